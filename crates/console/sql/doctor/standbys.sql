-- Finds standbys that hold back vacuum: with hot_standby_feedback, a standby reports to the primary which rows its own queries may still need.
select 'wrong', null::text,
       format('standby %s (%s) keeps vacuum from removing rows of the last %s transactions', coalesce(nullif(r.application_name, ''), r.pid::text),
              coalesce(r.client_addr::text, 'local socket'), r.age),
       null::timestamptz,
       'A query on the standby has run for a long time, and hot_standby_feedback keeps the rows that it may read.',
       'select pid, xact_start, query from pg_stat_activity where xact_start is not null order by xact_start; -- on the standby, and end the oldest'
from (
    -- A standby that uses a slot reports to the slot.
    select s.*, greatest(age(s.backend_xmin), age(l.xmin)) as age
    from pg_stat_replication s left join pg_replication_slots l on l.active_pid = s.pid) r
where r.age > 100000
order by r.age desc
