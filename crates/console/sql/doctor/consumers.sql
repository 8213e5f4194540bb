-- Checks that due messages are consumed. The oldest message is found along the queue's index, from the floor on.
select case when q.paused then 'advice' else 'wrong' end, q.name,
       format('the oldest due message has waited for %s, and %s', date_trunc('second', now() - o.due_at),
              case when q.paused then 'the queue is paused'
                   when l.is_leased then 'others are leased: consumers work, but not on it, or too slowly'
                   else 'nothing is leased' end),
       o.due_at,
       case when q.paused then 'Nothing is dequeued from a queue that is paused. Enqueues go on.'
            when l.is_leased then 'More comes in than goes out, handlers hang, or a limit of the queue is reached.'
            else 'No worker leases from this queue. Consumers that take at most once do not lease: then there are too few of them.' end,
       case when q.paused then format('select trunkline.resume_queue(%L);', q.name)
            else format('trunkline work %s --exec ./handler   # or start your consumers, or more of them', q.name) end
from trunkline.queue q, lateral ({oldest}) o (due_at), lateral (
    select exists (select from trunkline.{queue} m where m.due_at > now() and m.due_at < now() + 2 * q.lease
                                                     and m.attempt > 0 and m.error is null) as is_leased) l
where q.name = {name} and o.due_at < now() - interval '{patience}'
