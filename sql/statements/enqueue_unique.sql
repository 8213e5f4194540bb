-- Like enqueue, for messages some of which have unique keys. Claims the keys, and splits the
-- messages into rows on the server. Must be the only statement of its transaction.
select id, outcome from trunkline.{do_unique_}($1, $2, $3, $4, $5, $6, $7, true)
