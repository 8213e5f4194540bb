-- Before an acknowledgement in the caller's transaction: neighbours in a row with these messages get one of their own.
select trunkline.{do_carve_}($1, $2, $3, true)
