-- The messages are due again immediately, and the attempts are not counted.
select id, size, attempt from trunkline.{do_release_}($1, $2, $3)
