-- Checks the floor from which a new process looks for due messages. Consumers store it every ten seconds if it helps. No floor rises while a transaction
-- is open that may still commit a message below it, so the finding names the oldest transaction of the server that has an id. If a role may not see
-- when a transaction began, its age in transactions decides. The statement that stores a floor is safe beside transactions of the last minute.
select 'advice', b.queue,
       format('the stored floor of the queue is %s behind its oldest message', date_trunc('second', b.due_at - b.reached)) || coalesce('; ' || b.writer[1], ''),
       b.reached,
       case when b.writer is null
            then 'A new process scans all rows that died since then. Consumers store the floor, except roles that were granted their rights by hand and transactions above read committed.'
            else 'A new process scans all rows that died since then. While a transaction that has written is open, in any database of the server, no floor rises above its begin.'
                 || case when b.writer[3] = 'true'
                         then ' This one began after the stored floor. So another cause is likely: consumers store the floor, except roles that were granted their rights by hand and transactions above read committed.'
                         else '' end end,
       coalesce(b.writer[2], format('select trunkline.keep_floor(%L, %L);', b.queue, least(b.due_at, now()) - interval '1 minute'))
from (
    select f.queue, f.reached, o.due_at, (
        select array[w.what, w.mend, (w.since > f.reached)::text]
        from (
            select a.xact_start as since,
                   format('session %s of role %s (%s, %s) has written in a transaction that has been open for %s%s; its last statement is: %s',
                          a.pid, coalesce(a.usename, 'unknown'), coalesce(nullif(a.application_name, ''), 'no application name'),
                          coalesce(a.state, 'state unknown'), coalesce(date_trunc('second', now() - a.xact_start)::text, 'an unknown time'),
                          ' in database ' || nullif(a.datname, current_database()), {statement}) as what,
                   format(case when a.wait_event = 'SyncRep' then 'select state, sync_state from pg_stat_replication; -- session %s waits for a synchronous standby'
                               when a.wait_event_type = 'Lock' then 'select pg_blocking_pids(%s); -- it waits for the lock of another session: end that one'
                               else 'select pg_terminate_backend(%s); -- only if its work may be rolled back: otherwise wait until it ends, then examine again' end,
                          a.pid) as mend
            from pg_stat_activity a
            where a.pid <> pg_backend_pid() and a.backend_xid is not null
              and coalesce(a.xact_start < now() - least(interval '{patience}', interval '1 minute'), age(a.backend_xid) > 20000)
            union all
            select p.prepared,
                   format('prepared transaction %L of role %s in database %s has been open for %s', p.gid, p.owner, p.database, date_trunc('second', now() - p.prepared)),
                   format('rollback prepared %L; -- in database %s, or commit prepared, if its coordinator decided to commit', p.gid, p.database)
            from pg_prepared_xacts p where p.prepared < now() - least(interval '{patience}', interval '1 minute')) w
        order by w.since limit 1) as writer
    from trunkline.floor f, lateral ({oldest}) o (due_at), pg_stat_user_tables s
    where f.queue = {name} and s.schemaname = 'trunkline' and s.relname = 'queue_' || f.queue
      and s.n_dead_tup > 50000 and isfinite(f.reached) and f.reached < o.due_at - interval '1 hour') b
