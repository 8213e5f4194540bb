-- The next one need not wait.
update trunkline.relay set holder = null, held_until = '-infinity' where name = $1 and holder = $2
