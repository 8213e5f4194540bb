-- The relays, those that have failed or gone silent first. One that works says a word every ten seconds, so one that was silent for a minute is not there, or cannot reach the database.
select r.name, r.queue, r.broker, r.inward, r.confirmed, r.refused, r.held, r.lag, coalesce(r.last_error, ''), r.failed_at, r.seen_at,
       r.seen_at < clock_timestamp() - interval '1 minute'
from trunkline.relay r order by r.seen_at < clock_timestamp() - interval '1 minute' desc, r.failed_at desc nulls last, r.name limit 500
