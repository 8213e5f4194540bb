-- Before a change in somebody's transaction: whoever shares a row with these messages gets one of their own.
select pg_catalog.cardinality(busy) from trunkline.{do_pick_}($1, $2)
