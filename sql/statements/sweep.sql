-- Finds rows below the floor, a few pages at a time where much is dead.
select stray, next_page, cost from trunkline.{do_sweep_}($1, $2)
