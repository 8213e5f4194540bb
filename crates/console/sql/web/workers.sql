-- Returns the workers of a queue that reported in the last hour, as of their last report: running handlers, the maximum, and the messages handled and
-- failed in that hour.
select format('%s on %s, process %s', w.name, coalesce(host(w.address), 'the server'), w.process), w.version, w.started_at, w.at, w.ended,
       array[w.running, w.hands, h.handled, h.failed], case when w.seconds >= 0.001 then w.handled / w.seconds else 0 end, w.p50, w.p99
from (select distinct on (r.worker) r.* from trunkline.worker r
      where r.queue = $1 and r.at > now() - interval '1 hour' order by r.worker, r.at desc) w
join (select r.worker, sum(r.handled)::bigint as handled, sum(r.failed)::bigint as failed from trunkline.worker r
      where r.queue = $1 and r.at > now() - interval '1 hour' group by 1) h on h.worker = w.worker
order by w.ended, w.at < now() - interval '30 seconds', w.started_at limit 100
