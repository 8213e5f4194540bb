-- Returns schedules by name, with the payload as text.
select name, queue, expression, zone, payload, metadata, missed, paused,
       case when placed and not paused and pg_catalog.isfinite(next_at) then coalesce(owed_at, next_at) end, last_at, problem, priority, key
from trunkline.schedule order by name
