-- Finds reporting workers whose library is older than the newest one among the workers of the same queue, or older than this doctor.
with worker as (
    select distinct on (w.worker) w.*, case when w.version ~ '^[0-9]+([.][0-9]+)*' then
           string_to_array(substring(w.version from '^[0-9]+(?:[.][0-9]+)*'), '.')::numeric[] end as number
    from trunkline.worker w order by w.worker, w.at desc
), newest as (
    select distinct on (v.queue) v.queue, v.version, v.number from (
        select w.queue, w.version, w.number from worker w
        union all
        select w.queue, '{version}', string_to_array(substring('{version}' from '^[0-9]+(?:[.][0-9]+)*'), '.')::numeric[] from worker w) v
    where v.number is not null order by v.queue, v.number desc)
select 'advice', w.queue,
       format('%s version %s, and the newest version is %s: %s', case when count(*) = 1 then '1 worker runs' else count(*) || ' workers run' end,
              w.version, n.version, left(string_agg(format('%s on %s, process %s', w.name, coalesce(host(w.address), 'the server'), w.process), '; '), 300)),
       min(w.started_at),
       'These workers lack later fixes. Versions that can open the queue work together.',
       format('-- build these programs with trunkline %s, and restart them', n.version)
from worker w join newest n on n.queue = w.queue
where w.number < n.number and not w.ended and w.at > now() - interval '30 seconds'
group by w.queue, w.version, n.version
order by w.queue, w.version
