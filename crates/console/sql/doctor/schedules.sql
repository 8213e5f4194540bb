-- Finds schedules whose ticks fail, and schedules whose time has passed without a tick.
select 'wrong', s.queue,
       format(case when not u.unreadable and (s.owed_at is not null or s.placed) then 'schedule %s could not make its last tick: %s'
                   else 'schedule %s makes no ticks: %s' end, s.name, left(s.problem, 300)), coalesce(s.owed_at, s.last_at, s.created_at),
       case when u.unreadable then 'Its expression or its time zone is wrong, or the process that looked last does not know them.'
            when s.owed_at is not null then 'The tick is retried at least every five minutes. Until a tick succeeds, the schedule enqueues nothing.'
            when s.placed then 'That tick was dropped. Until a tick succeeds, the schedule enqueues nothing.'
            else 'Its expression has no date in the future. A process looks again every hour.' end,
       case when not u.unreadable
            then format('select trunkline.fire_schedule(%L); -- enqueues its message now, or fails with the reason', s.name)
            else format('select trunkline.set_schedule(s.name, s.queue, ''0 3 * * *'', s.payload, ''UTC'', s.metadata, s.missed, s.priority, s.key) '
                        'from trunkline.schedule s where s.name = %L; -- with the expression and the time zone that were meant', s.name) end
from trunkline.schedule s,
     lateral (select s.problem like 'invalid schedule expression%' or s.problem like 'there is no time zone%' as unreadable) u
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
