-- Finds schedules whose ticks fail, and schedules whose time has passed without a tick.
select 'wrong', s.queue,
       format('schedule %s could not make its last tick: %s', s.name, left(s.problem, 300)), coalesce(s.owed_at, s.last_at, s.created_at),
       case when s.owed_at is not null then 'The tick is retried at least every five minutes. Until a tick succeeds, the schedule enqueues nothing.'
            when s.placed then 'That tick was dropped. Until a tick succeeds, the schedule enqueues nothing.'
            else 'It makes no ticks. A process reads the expression again every hour.' end,
       format('select trunkline.fire_schedule(%L); -- enqueues its message now, or fails with the reason', s.name)
from trunkline.schedule s
where s.problem is not null and not s.paused
union all
select 'wrong', null, format('late schedules: %s; the most overdue is %s, by %s', count(*), (array_agg(s.name order by s.next_at))[1],
                             date_trunc('second', now() - min(s.next_at))), min(s.next_at),
       'No process makes ticks, or the processes that do are stuck. A worker makes ticks if its role owns the schema, or is an operator of all queues.',
       'trunkline schedule run   # or grant a worker''s role: trunkline grant --all --operator ROLE'
from trunkline.schedule s
where not s.paused and s.problem is null and s.next_at < now() - greatest(interval '{patience}', interval '90 seconds')
having count(*) > 0
union all
select 'wrong', null, format('the next ticks of %s schedules were computed by a clock that was ahead; that of %s is %s', count(*),
                             (array_agg(s.name order by s.next_at desc))[1], max(s.next_at)), null,
       'They make no ticks before that time. A process of this version corrects such ticks within a minute, so none is running.',
       'select trunkline.right_schedules();'
from trunkline.schedule s
where not s.paused and s.placed_at > now() + interval '1 minute'
having count(*) > 0
order by 1 desc, 2, 3
