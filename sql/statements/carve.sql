-- Runs before an acknowledgement in the caller's transaction: other messages in the rows of these messages get rows of their own.
select trunkline.{do_carve_}($1, $2, $3, true)
