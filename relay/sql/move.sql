-- Moves the position, in the transaction that enqueues what is before it; only from where the holder believes it to be.
update trunkline.relay set position = $4, held_until = pg_catalog.clock_timestamp() + $5 * interval '1 second', seen_at = pg_catalog.clock_timestamp(), confirmed = confirmed + $6, lag = $7
where name = $1 and holder = $2 and position is not distinct from $3
