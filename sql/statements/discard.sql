-- Discards these dead letters or, if the ids are null, the oldest ones up to the limit.
select id from trunkline.{do_discard_}($1, $2) id
