-- Returns the relays, first those that have failed or gone silent. A working relay reports every ten seconds. So a relay that was silent for a minute is gone,
-- or cannot reach the database. Returns at most a hundred per queue, and only as much of each text as a page shows. Any role that may enqueue writes these
-- rows, and it must not be able to hide the relays of another queue.
select case when r.is_silent then 'silent' else 'works' end, left(r.name, 200), r.queue, case when r.inward then 'from ' else 'to ' end || left(r.broker, 200),
       r.confirmed, array[r.refused, r.held], r.lag, coalesce(left(r.last_error, 1000), ''), r.failed_at, r.seen_at
from (select o.*, o.seen_at < clock_timestamp() - interval '1 minute' as is_silent,
             row_number() over (partition by o.queue order by o.seen_at < clock_timestamp() - interval '1 minute' desc, o.failed_at desc nulls last, o.name) as place
      from trunkline.relay o) r
where r.place <= 100
order by r.is_silent desc, r.failed_at desc nulls last, r.name limit 500
