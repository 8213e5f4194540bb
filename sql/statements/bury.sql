-- Dead at once, each with its reason; what is not returned was not leased any more.
select id, size, attempt from trunkline.{do_bury_}($1, $2, $3, $4)
