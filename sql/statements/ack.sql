-- Ranges of messages under an attempt; what is not returned was not leased any more.
select id, size, attempt from trunkline.{do_ack_}($1, $2, $3)
