-- Takes ranges of messages, each with an attempt. A message that is not returned was no longer
-- leased.
select id, size, attempt from trunkline.{do_ack_}($1, $2, $3)
