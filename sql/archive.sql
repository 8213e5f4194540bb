-- An acknowledgement that keeps the message.
select id, size from trunkline.{archive_}($1, $2, $3)
