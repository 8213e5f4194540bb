-- Releases the position, so that the next relay need not wait.
update trunkline.relay set holder = null, held_until = '-infinity' where name operator(pg_catalog.=) $1 and holder operator(pg_catalog.=) $2 and queue operator(pg_catalog.=) $3
