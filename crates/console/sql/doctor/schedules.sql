-- Finds schedules whose ticks fail, and schedules whose time has passed without a tick.
select 'wrong', s.queue,
       format('schedule %s could not make its last tick: %s', s.name, left(s.problem, 300)), coalesce(s.owed_at, s.last_at, s.created_at),
       case when s.owed_at is not null then 'The tick is tried again, at least each five minutes. Until one succeeds the queue gets no message of it.'
            when s.placed then 'That tick is given up. Until one succeeds the queue gets no message of it.'
            else 'It makes no ticks. It is looked at again each hour.' end,
       format('select trunkline.fire_schedule(%L); -- says the same error, until its cause is mended', s.name)
from trunkline.schedule s
where s.problem is not null and not s.paused
union all
select 'wrong', null, format('%s schedules are late, the first of them %s by %s', count(*), (array_agg(s.name order by s.next_at))[1],
                             date_trunc('second', now() - min(s.next_at))), min(s.next_at),
       'No process makes ticks, or those that run do not come through. A worker makes them if its role is the schema''s owner, or an operator of all queues.',
       'trunkline schedule run   # or grant a worker''s role: trunkline grant --all --operator ROLE'
from trunkline.schedule s
where not s.paused and s.problem is null and s.next_at < now() - greatest(interval '{patience}', interval '90 seconds')
having count(*) > 0
union all
select 'wrong', null, format('the next ticks of %s schedules were worked out by a clock that was ahead, as that of %s for %s', count(*),
                             (array_agg(s.name order by s.next_at desc))[1], max(s.next_at)), null,
       'They make no ticks until then. Processes that make ticks put that right within a minute, so none of this version runs.',
       'select trunkline.right_schedules();'
from trunkline.schedule s
where not s.paused and s.placed_at > now() + interval '1 minute'
having count(*) > 0
order by 1 desc, 2, 3
