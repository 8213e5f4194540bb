-- Reports the progress of a relay out of a queue, for the list of relays.
insert into trunkline.relay (name, queue, broker, inward, confirmed, refused, held, lag, last_error, failed_at)
values ($1, $2, $3, false, $4, $5, $6, $7, $8, case when $8::pg_catalog.text is null then null else pg_catalog.clock_timestamp() end)
on conflict (queue, name) do update set confirmed = excluded.confirmed, refused = excluded.refused, held = excluded.held, lag = excluded.lag, seen_at = pg_catalog.clock_timestamp(),
    last_error = coalesce(excluded.last_error, relay.last_error), failed_at = coalesce(excluded.failed_at, relay.failed_at)
