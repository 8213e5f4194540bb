-- Extends the hold on a position while no messages arrive.
update trunkline.relay set held_until = clock.at operator(pg_catalog.+) ($3 operator(pg_catalog.*) interval '1 second'), seen_at = clock.at, lag = $4, last_error = coalesce($5, last_error),
    failed_at = case when $5 is null then failed_at else clock.at end -- equal to seen_at, by which the doctor knows that the relay stopped because of it
from (select pg_catalog.clock_timestamp() as at) clock
where name operator(pg_catalog.=) $1 and holder operator(pg_catalog.=) $2 and queue operator(pg_catalog.=) $6
