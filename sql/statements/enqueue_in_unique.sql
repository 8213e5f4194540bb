-- Like enqueue_unique, on the caller's connection: the notification is sent at the caller's commit.
select id, outcome from trunkline.{do_unique_}($1, $2, $3, $4, $5, $6, $7)
