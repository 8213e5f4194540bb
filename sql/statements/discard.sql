-- If the ids are null, discards the oldest dead letters, up to the limit.
select id from trunkline.discard_letters($3, $1, $2) id
