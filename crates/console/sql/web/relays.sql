-- The relays, those that have failed or gone silent first. One that works says a word every ten seconds, so one that was silent for a minute is not there, or cannot reach the database.
select case when r.seen_at < clock_timestamp() - interval '1 minute' then 'silent' else 'works' end, r.name, r.queue, case when r.inward then 'from ' else 'to ' end || r.broker,
       r.confirmed, array[r.refused, r.held], r.lag, coalesce(r.last_error, ''), r.failed_at, r.seen_at
from trunkline.relay r order by r.seen_at < clock_timestamp() - interval '1 minute' desc, r.failed_at desc nulls last, r.name limit 500
