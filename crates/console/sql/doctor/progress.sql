-- Finds handlers that run and never end, and queues whose workers have all vanished, among workers that report.
with worker as (
    select distinct on (w.worker) w.*, format('%s on %s, process %s', w.name, coalesce(host(w.address), 'the server'), w.process) as who
    from trunkline.worker w order by w.worker, w.at desc
)
select 'wrong', w.queue, format('worker %s runs %s handlers, and none has ended for %s', w.who, w.running, date_trunc('second', now() - s.since)), s.since,
       'They hang, or wait for a call that hangs. Their messages stay leased, because leases are renewed for as long as handlers run.',
       format('kill -TERM %s   # on its machine; then give its handlers a limit: Worker::timeout, trunkline work --timeout', w.process)
from worker w, lateral (
    select coalesce(max(r.at) filter (where r.handled > 0 or r.running = 0), greatest(min(r.at), w.started_at)) as since from trunkline.worker r where r.worker = w.worker) s
where w.running > 0 and not w.ended and w.at > now() - interval '30 seconds' and s.since < now() - interval '{patience}'
union all
select 'advice', w.queue, format('worker %s has reported nothing for %s, and did not shut down cleanly', w.who, date_trunc('second', now() - w.at)), w.at,
       'It was killed, or cannot reach the database. No other reporting worker works on the queue.',
       format('trunkline work %s --report --exec ./handler   # or start that program again', w.queue)
from worker w
where not w.ended and w.at < now() - interval '30 seconds' and w.at < now() - interval '{patience}'
  and not exists (select from worker o where o.queue = w.queue and not o.ended and o.at > now() - interval '30 seconds')
  and not exists (select from worker o where o.queue = w.queue and o.at > w.at)
order by 2, 3
