-- Returns the failed messages per second, by queue, from the last reports of the workers.
select w.queue, sum(w.failed / greatest(w.seconds, 1))::float8
from (select distinct on (r.worker) r.queue, r.failed, r.seconds, r.ended from trunkline.worker r
      where r.at > now() - interval '15 seconds' order by r.worker, r.at desc) w
where not w.ended group by 1
