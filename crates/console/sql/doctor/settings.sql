-- Finds settings of the server, or of this role and database, that cost durability or speed.
select f.severity, null::text, format('%s is %s%s', s.name, s.setting, coalesce(' (set in ' || nullif(s.source, 'default') || ')', '')), null::timestamptz, f.why,
       format('alter system set %I = %s; select pg_reload_conf();', s.name, f.better)
       || case when s.source in ('database', 'user', 'database user') then ' -- and reset it for the database and the role' else '' end
from (values
    ('fsync', 'off', 'wrong', 'on', 'After a crash of the machine, the whole database may be unreadable.'),
    ('full_page_writes', 'off', 'wrong', 'on', 'A crash during a write can leave a half-written page, which cannot be repaired.'),
    ('synchronous_commit', 'off', 'advice', 'on', 'A crash loses the commits of the last 0.6 s: enqueues, leases and their ends. Ids and attempts are then used again, so a worker may end the lease of another message.'),
    ('synchronous_commit', 'local', 'advice', 'on', 'Commits do not wait for the synchronous standbys. A failover loses the last ones: enqueues, leases and their ends. Ids and attempts are then used again, so a worker may end the lease of another message.'),
    ('autovacuum', 'off', 'wrong', 'on', 'Rows of queues live for milliseconds. Without autovacuum, their tables only grow.'),
    ('track_counts', 'off', 'wrong', 'on', 'Autovacuum needs these statistics, and vacuums nothing without them.'),
    ('zero_damaged_pages', 'on', 'wrong', 'off', 'PostgreSQL silently empties a damaged page, and the messages on it are lost.'),
    ('ignore_checksum_failure', 'on', 'wrong', 'off', 'Data that the disk has damaged is read as if it were correct.'),
    ('enable_indexscan', 'off', 'wrong', 'on', 'Each dequeue reads the whole table to find due messages.'),
    ('default_transaction_read_only', 'on', 'wrong', 'off', 'Every enqueue and every dequeue fails, because transactions only read.'),
    ('session_replication_role', 'replica', 'wrong', 'origin', 'Triggers do not run, so the tables accept rows that no consumer can read, and unique keys are not freed.')
) f (name, setting, severity, better, why)
join pg_settings s on s.name = f.name and s.setting = f.setting
    -- A role that only reads is not the role of producers and consumers.
    and not (s.name = 'default_transaction_read_only' and s.source in ('user', 'database user', 'client', 'session'))
    -- Without synchronous standbys, local is the same as on.
    and not (s.setting = 'local' and current_setting('synchronous_standby_names') = '')
union all
-- The settings of this session do not show those of other roles. A setting for a role in this database overrides the role's.
select 'advice', null, format('synchronous_commit is off for role %I', r.rolname), null,
       'A crash loses the commits of the last 0.6 s of this role: enqueues, leases and their ends. Ids and attempts are then used again, so a worker may end the lease of another message.',
       format('alter role %I%s reset synchronous_commit;', r.rolname, case when d.setdatabase <> 0 then format(' in database %I', current_database()) end)
       || case when pg_is_in_recovery() then ' -- on the primary' else '' end
from (select distinct on (d.setrole) d.setrole, d.setdatabase, lower(split_part(c.setting, '=', 2)) as value
      from pg_db_role_setting d, unnest(d.setconfig) c (setting)
      where d.setdatabase in (0, (select b.oid from pg_database b where b.datname = current_database())) and split_part(c.setting, '=', 1) = 'synchronous_commit'
      order by d.setrole, d.setdatabase desc) d
join pg_roles r on r.oid = d.setrole
where d.value in ('off', 'false', 'no', '0') and r.rolcanlogin and r.rolname <> session_user and has_schema_privilege(r.oid, 'trunkline', 'usage')
union all
select 'advice', null, format('jit_above_cost is %s', s.setting), null, 'PostgreSQL compiles statements that run for less time than their compilation takes.', 'alter system set jit_above_cost = 100000; select pg_reload_conf();'
from pg_settings s join pg_settings j on j.name = 'jit' and j.setting = 'on'
where s.name = 'jit_above_cost' and s.setting::float8 between 0 and 50000
union all
select 'advice', null, format('%s of max_connections = %s are in use', c.used, c.most), null,
       'Once all connections are in use, the server refuses further ones. For each Db, a process needs seven, up to 17 while locks or open transactions hold up its calls, and one more for each of its open transactions beyond four; two while its consumers only wait.',
       'alter system set max_connections = ' || 2 * c.most || '; -- and restart the server, or use a pooler for the other programs'
from (select count(*) as used, current_setting('max_connections')::int as most from pg_stat_activity a where a.backend_type = 'client backend') c
where c.used > 0.85 * c.most
