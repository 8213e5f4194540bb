-- Returns the workers' reports of the last hour, minute by minute: messages handled and failed per second, and how long calls took. If several workers
-- reported times, the longest counts: half of the calls did not exceed it on any worker.
select floor(extract(epoch from now() - r.at) / 60)::int, sum(r.handled)::float8 / 60, sum(r.failed)::float8 / 60, max(r.p50), max(r.p99)
from trunkline.worker r where r.queue = $1 and r.at > now() - interval '1 hour'
group by 1 order by 1
