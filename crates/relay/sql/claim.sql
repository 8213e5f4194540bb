-- Claims the position for one relay: no other relay moves it while its holder reports. A time that is later than any holder asks for was written by a clock
-- that was ahead. Returns no row if another relay holds the position, or if the name belongs to another relay.
update trunkline.relay set holder = $4, held_until = pg_catalog.clock_timestamp() operator(pg_catalog.+) ($5 operator(pg_catalog.*) interval '1 second'), seen_at = pg_catalog.clock_timestamp(),
    started_at = pg_catalog.clock_timestamp()
where name operator(pg_catalog.=) $1 and queue operator(pg_catalog.=) $2 and broker operator(pg_catalog.=) $3 and inward
  and (holder is null or holder operator(pg_catalog.=) $4 or held_until operator(pg_catalog.<) pg_catalog.clock_timestamp()
       or held_until operator(pg_catalog.>) (pg_catalog.clock_timestamp() operator(pg_catalog.+) ($5 operator(pg_catalog.*) interval '2 seconds')))
returning position
