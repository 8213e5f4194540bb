-- An acknowledgement that keeps the message.
select id, size, attempt from trunkline.{archive_}($1, $2, $3)
