-- Returns the partitions of a queue with keys that a worker owns or that have waiting messages. For each: until when the worker owns it, whether
-- another worker requests it, its first row, and the number of keys with backlogs of their own.
select h.lane::int, case when h.held_until > clock_timestamp() then h.held_until end, h.wanted_until > clock_timestamp(), f.id, f.keys[1], f.due_at,
       case when f.due_at <= clock_timestamp() then 'due' when f.error is not null then 'retrying' when f.attempt > 0 then 'leased' else 'delayed' end,
       (select count(*) from (select from trunkline.{line} w where w.lane = h.lane limit 1000) w)
from trunkline.{lane} h left join lateral (
    select q.id, q.keys, q.due_at, q.error, q.attempt from trunkline.{queue} q
    where q.lane = h.lane and q.line = '' and (q.place, q.id + 0) >= (h.floor, 0) order by q.place, q.id + 0 limit 1) f on true
where h.lane >= 0 and (h.held_until > clock_timestamp() or f.id is not null or exists (select from trunkline.{line} w where w.lane = h.lane))
order by h.lane
