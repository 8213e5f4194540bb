-- Finds rows below the floor; reads a few pages at a time if many rows are dead.
select stray, next_page, cost from trunkline.{do_sweep_}($1, $2)
