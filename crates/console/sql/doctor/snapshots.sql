-- Finds sessions whose transaction has been open for a long time: vacuum cannot remove rows deleted since then, in any table of the database. A session
-- that waits for a lock is left out if the session that blocks it has been in its transaction as long: then the other one is reported, in whatever
-- database. A session whose start is unknown counts as old: it holds a lock outside of a transaction, or the role may not see it. A session that waits
-- for a synchronous standby is left out, too: see the check `standbys`.
with waiting as materialized (
    select a.pid, pg_blocking_pids(a.pid) as blockers,
           (select format('%s on %s', l.mode, l.relation::regclass) from pg_locks l where l.pid = a.pid and not l.granted and l.relation is not null limit 1) as lock
    from pg_stat_activity a
    where a.datname = current_database() and a.backend_type = 'client backend' and a.wait_event_type = 'Lock'
      and a.xact_start < now() - interval '{patience}'
    order by a.xact_start limit 100 -- because each call of pg_blocking_pids stops the server's locks for a moment
), blocked as materialized (
    select w.pid, w.lock, b.pid as blocker
    from waiting w cross join unnest(w.blockers) b (pid) left join pg_stat_activity s on s.pid = b.pid -- a prepared transaction has the number 0
    where coalesce(s.xact_start, '-infinity') < now() - interval '{patience}'
)
select case when a.backend_xmin is null and a.backend_xid is null and h.sessions is null then 'advice' else 'wrong' end, null::text,
       format('session %s of role %s (%s, %s) %s%s; its last statement is: %s',
              a.pid, coalesce(a.usename, 'unknown'), coalesce(nullif(a.application_name, ''), 'no application name'), coalesce(a.state, 'state unknown'),
              case when a.xact_start is null then 'holds a lock'
                   else format('has had a transaction open for %s', date_trunc('second', now() - a.xact_start)) end,
              case when h.sessions is not null then format(', and blocks %s other session%s (%s)%s', h.sessions, case when h.sessions > 1 then 's' else '' end,
                                                           h.pids, coalesce(', waiting for ' || h.lock, '')) else '' end,
              {statement}),
       a.xact_start,
       case when h.sessions is not null
            then 'The sessions that it blocks wait until it ends its transaction, and others wait behind them.' else '' end
       || case when a.backend_xmin is not null or a.backend_xid is not null
               then case when h.sessions is not null then ' ' else '' end
                    || 'Vacuum cannot remove rows that were deleted since then. Tables and indexes grow, and all statements that read them get slower.'
               when h.sessions is null then 'It keeps its locks and its connection. With its next statement, it may hold back vacuum.' else '' end,
       format('select pg_terminate_backend(%s);', a.pid)
from pg_stat_activity a
left join lateral (
    select count(distinct b.pid) as sessions, string_agg(distinct b.pid::text, ', ') as pids, min(b.lock) as lock
    from blocked b where b.blocker = a.pid having count(*) > 0) h on true
where a.pid <> pg_backend_pid()
  and (h.sessions is not null
       or a.datname = current_database() and a.backend_type = 'client backend' and a.xact_start < now() - interval '{patience}'
          and not exists (select from pg_stat_progress_vacuum v where v.pid = a.pid)) -- its snapshot holds back no vacuum
  and a.wait_event is distinct from 'SyncRep' and not exists (select from blocked b where b.pid = a.pid)
order by a.xact_start
