-- Finds sessions whose transaction has been open for a long time. Rows that were deleted since then cannot be cleaned away, in any table of the database.
select case when a.backend_xmin is null and a.backend_xid is null then 'advice' else 'wrong' end, null::text,
       format('session %s of role %s (%s, %s) has had a transaction open for %s; its last statement is: %s',
              a.pid, coalesce(a.usename, 'nobody'), coalesce(nullif(a.application_name, ''), 'no application name'), a.state,
              date_trunc('second', now() - a.xact_start),
              left(regexp_replace(a.query, '\s+', ' ', 'g'), 200)),
       a.xact_start,
       case when a.backend_xmin is null and a.backend_xid is null then 'It keeps its locks and its connection. With its next statement it may hold back the cleaning of dead rows.'
            else 'No row that was deleted since then can be cleaned away, by autovacuum or by hand. Tables and indexes grow, and everything that reads them gets slower.' end,
       format('select pg_terminate_backend(%s);', a.pid)
from pg_stat_activity a
where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_type = 'client backend'
  and a.xact_start < now() - interval '{patience}'
order by a.xact_start
