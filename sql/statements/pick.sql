-- Before a change in the caller's transaction: neighbours in a row with these messages get one of their own.
select pg_catalog.cardinality(busy) from trunkline.{do_pick_}($1, $2)
