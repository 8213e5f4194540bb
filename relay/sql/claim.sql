-- The position, for one at a time: nobody else moves it while the holder is heard of. No row: another holds it, or the name is another relay's.
update trunkline.relay set holder = $4, held_until = pg_catalog.clock_timestamp() + $5 * interval '1 second', seen_at = pg_catalog.clock_timestamp(), started_at = pg_catalog.clock_timestamp()
where name = $1 and queue = $2 and broker = $3 and inward and (holder is null or holder = $4 or held_until < pg_catalog.clock_timestamp())
returning position
