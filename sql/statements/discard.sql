-- If the ids are null, discards the oldest dead letters, up to the limit.
select id from trunkline.{do_discard_}($1, $2) id
