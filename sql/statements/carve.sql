-- Before an acknowledgement in somebody's transaction: whoever shares a row with these messages gets one of their own.
select trunkline.{do_carve_}($1, $2, $3, true)
