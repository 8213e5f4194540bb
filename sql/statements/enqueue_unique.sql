-- As enqueue, for messages of which some have unique keys: claims the keys, and cuts into rows there. Alone in its transaction.
select id, outcome from trunkline.{do_unique_}($1, $2, $3, $4, $5, $6, $7, true)
