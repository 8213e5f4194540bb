-- Splits the rows of these messages in a transaction of its own. A later acknowledgement in the caller's transaction then
-- locks no other message.
select trunkline.{do_carve_}($1, $2, $3, true)
