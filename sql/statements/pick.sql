-- Runs before a change in the caller's transaction: other messages in the rows of these messages get rows of their own.
select pg_catalog.cardinality(busy) from trunkline.{do_pick_}($1, $2)
