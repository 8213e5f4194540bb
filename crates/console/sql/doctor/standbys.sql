-- Finds standbys that hold back vacuum: with hot_standby_feedback, a standby reports to the primary which rows its own queries may still need. Also
-- finds that commits wait for synchronous standbys. A role that may not read statistics does not see the state of a standby, so each one counts.
(select 'wrong', null::text,
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
order by r.age desc)
union all
select 'wrong', null,
       format('synchronous_standby_names is %L, so commits wait for %s of these standbys, and %s of them confirm commits%s', n.names, n.needed, s.present,
              case w.sessions when 0 then '' when 1 then '; 1 session waits' else format('; %s sessions wait', w.sessions) end),
       w.since,
       'Enqueues, leases and acknowledgements wait at their commit until these standbys have confirmed it. To end the waiting sessions does not help.',
       'select application_name, state, sync_state from pg_stat_replication; -- then start the standbys that are missing, or name others in synchronous_standby_names'
from (select k.names, coalesce(substring(k.names from '(?i)^\s*(?:(?:first|any)\s+)?(\d+)\s*\(')::int, 1) as needed
      from current_setting('synchronous_standby_names') k (names)) n,
     (select count(*) filter (where r.sync_state is null or r.sync_state in ('sync', 'quorum')) as present from pg_stat_replication r) s,
     (select count(*) as sessions, count(*) filter (where a.query_start < now() - interval '{patience}') as old, min(a.query_start) as since
      from pg_stat_activity a where a.wait_event = 'SyncRep') w
where btrim(n.names) <> '' and not pg_is_in_recovery() and current_setting('max_wal_senders')::int > 0
  and (w.old > 0 or s.present < n.needed and (w.sessions > 0 or current_setting('synchronous_commit') not in ('off', 'local')))
