-- What workers told of the last hour, minute by minute: messages handled and failed a second, and how long calls took. Of times that several told, the longest
-- counts: what half of the calls did not exceed anywhere.
select floor(extract(epoch from now() - r.at) / 60)::int, sum(r.handled)::float8 / 60, sum(r.failed)::float8 / 60, max(r.p50), max(r.p99)
from trunkline.worker r where r.queue = $1 and r.at > now() - interval '1 hour'
group by 1 order by 1
