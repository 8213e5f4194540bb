-- An acknowledgement that keeps the message.
select id, size, attempt from trunkline.{do_archive_}($1, $2, $3)
