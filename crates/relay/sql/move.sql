-- Moves the position, in the transaction that enqueues the messages before it, but only if it is still where this relay last read it.
-- If another relay claimed it while the messages were sent for too long, and has not moved it, this one takes it back: otherwise neither would ever finish.
update trunkline.relay set position = $4, holder = $2, held_until = pg_catalog.clock_timestamp() operator(pg_catalog.+) ($5 operator(pg_catalog.*) interval '1 second'), seen_at = pg_catalog.clock_timestamp(),
    confirmed = confirmed operator(pg_catalog.+) $6, lag = $7,
    refused = refused operator(pg_catalog.+) case when $8::pg_catalog.text is null then 0 else 1 end, last_error = coalesce($8, last_error),
    failed_at = case when $8 is null then failed_at else pg_catalog.clock_timestamp() end
where name operator(pg_catalog.=) $1 and queue operator(pg_catalog.=) $9
  and case when $3::pg_catalog.text is null then position is null else position operator(pg_catalog.=) $3 end
