-- Checks that due messages are consumed. Finds the oldest message along the queue's index, from its floor on. A worker may lease for longer than the
-- queue's lease, so leases are also looked for among the messages that are due last.
select case when q.paused then 'advice' else 'wrong' end, q.name,
       format('the oldest due message has waited for %s, and %s', date_trunc('second', now() - o.due_at),
              case when q.paused then 'the queue is paused'
                   when l.is_leased then 'other messages are leased: consumers are too slow, or work on other messages'
                   when l.is_limited then 'nothing is leased; the queue has a rate limit'
                   else 'nothing is leased' end),
       o.due_at,
       case when q.paused then 'A paused queue delivers no messages. Enqueues continue.'
            when l.is_leased then 'Messages arrive faster than they are consumed, handlers hang, or a limit of the queue is reached.'
            when l.is_limited then 'The queue''s rate limit holds its messages back, or no worker leases from it.'
            else 'No worker leases from this queue. If its consumers take messages at most once, which does not lease, there are too few of them.' end,
       case when q.paused then format('select trunkline.resume_queue(%L);', q.name)
            when l.is_limited and not l.is_leased then
                format('trunkline queue describe %s   # shows the limits; if they are right, start your consumers', q.name)
            else format('trunkline work %s --exec ./handler   # or start your consumers, or more of them', q.name) end
from trunkline.queue q, lateral ({oldest}) o (due_at), lateral (
    select exists (select from trunkline.{queue} m where m.due_at > now() and m.due_at < now() + 2 * q.lease
                                                     and m.attempt > 0 and m.error is null)
        or exists (select from ({last}) m where m.attempt > 0 and m.error is null) as is_leased,
           coalesce(q.per_second, q.key_per_second) is not null as is_limited) l
where q.name = {name} and o.due_at < now() - interval '{patience}'
