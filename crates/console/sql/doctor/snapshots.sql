-- Finds sessions whose transaction has been open for a long time: vacuum cannot remove rows deleted since then, in any table of the database.
select case when a.backend_xmin is null and a.backend_xid is null then 'advice' else 'wrong' end, null::text,
       format('session %s of role %s (%s, %s) has had a transaction open for %s; its last statement is: %s',
              a.pid, coalesce(a.usename, 'unknown'), coalesce(nullif(a.application_name, ''), 'no application name'), a.state,
              date_trunc('second', now() - a.xact_start),
              left(regexp_replace(a.query, '\s+', ' ', 'g'), 200)),
       a.xact_start,
       case when a.backend_xmin is null and a.backend_xid is null then 'It keeps its locks and its connection. With its next statement, it may hold back vacuum.'
            else 'Vacuum cannot remove rows that were deleted since then. Tables and indexes grow, and all statements that read them get slower.' end,
       format('select pg_terminate_backend(%s);', a.pid)
from pg_stat_activity a
where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_type = 'client backend'
  and a.xact_start < now() - interval '{patience}'
  and not exists (select from pg_stat_progress_vacuum v where v.pid = a.pid) -- its snapshot holds back no vacuum
order by a.xact_start
