-- Extends the hold on a position while no messages arrive.
update trunkline.relay set held_until = pg_catalog.clock_timestamp() operator(pg_catalog.+) ($3 operator(pg_catalog.*) interval '1 second'), seen_at = pg_catalog.clock_timestamp(), lag = $4, last_error = coalesce($5, last_error),
    failed_at = case when $5 is null then failed_at else pg_catalog.clock_timestamp() end
where name operator(pg_catalog.=) $1 and holder operator(pg_catalog.=) $2 and queue operator(pg_catalog.=) $6
