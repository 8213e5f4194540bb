-- Returns keys that have a backlog of their own (a line), because one of their messages failed, or because of a rate or too many messages. For each:
-- the first row of the backlog, until when it waits, how many messages wait in its first 500 rows, and whether there may be more.
select w.key, w.lane::int, f.id,
       case when f.due_at <= clock_timestamp() and w.until > clock_timestamp() then 'rests' when f.due_at <= clock_timestamp() then 'due'
            when f.error is not null then 'retrying' when f.attempt > 0 then 'leased' when f.id is not null then 'delayed' else 'empty' end,
       greatest(f.due_at, w.until), coalesce(f.attempt, 0), left(f.error, 200), coalesce(n.messages, 0)::bigint, coalesce(n.may_be_more, false)
from (select w.key, w.lane, w.until from trunkline.{line} w order by w.until desc, w.key limit 50) w
left join lateral (
    select q.id, q.due_at, q.attempt, q.error from trunkline.{queue} q
    where q.lane = w.lane and q.line = w.key order by q.place, q.id + 0 limit 1) f on true
left join lateral (
    select sum(r.size) as messages, count(*) >= 500 as may_be_more from (
        select q.size from trunkline.{queue} q where q.lane = w.lane and q.line = w.key order by q.place, q.id + 0 limit 500) r) n on true
