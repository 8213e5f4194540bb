-- Like enqueue_unique, but waits for other transactions that have claimed a key.
select id, outcome from trunkline.{do_unique_}($1, $2, $3, $4, $5, $6, $7, true)
