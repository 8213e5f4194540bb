-- Returns the workers' reports of the last hour by minute: messages handled and failed per second, and the duration of calls. If several workers
-- reported, the longest duration counts: half of the calls took no longer on any worker.
select floor(extract(epoch from now() - r.at) / 60)::int, sum(r.handled)::float8 / 60, sum(r.failed)::float8 / 60, max(r.p50), max(r.p99)
from trunkline.worker r where r.queue = $1 and r.at > now() - interval '1 hour'
group by 1 order by 1
