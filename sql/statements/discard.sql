-- Null discards the oldest of all, up to the limit.
select id from trunkline.{do_discard_}($1, $2) id
