-- Makes messages dead letters immediately, each with its own reason. A message that is not returned was no longer leased.
select id, size, attempt from trunkline.{do_bury_}($1, $2, $3, $4)
