-- Discards these dead letters of a queue or, if the ids are null, the oldest ones up to the limit.
select id from trunkline.discard_some($1, $2, $3) id
