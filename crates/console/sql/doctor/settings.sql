-- Finds settings of the server, the role or the database that cost durability or speed.
select f.severity, null::text, format('%s is %s%s', s.name, s.setting, coalesce(' (set in ' || nullif(s.source, 'default') || ')', '')), null::timestamptz, f.why,
       format('alter system set %I = %s; select pg_reload_conf();', s.name, f.better)
       || case when s.source in ('database', 'user', 'database user') then ' -- and reset it for the database and the role' else '' end
from (values
    ('fsync', 'off', 'wrong', 'on', 'After a crash of the machine the whole database may be unreadable.'),
    ('full_page_writes', 'off', 'wrong', 'on', 'A crash during a write can leave half a page, which nothing repairs.'),
    ('synchronous_commit', 'off', 'advice', 'on', 'What was acknowledged in the last half second before a crash is lost: messages that were enqueued, and ends of leases.'),
    ('autovacuum', 'off', 'wrong', 'on', 'Rows of queues live for milliseconds. Without autovacuum their tables only grow.'),
    ('track_counts', 'off', 'wrong', 'on', 'Autovacuum does not know where it is needed, and cleans nothing.'),
    ('zero_damaged_pages', 'on', 'wrong', 'off', 'A damaged page is emptied silently, with all messages on it.'),
    ('ignore_checksum_failure', 'on', 'wrong', 'off', 'What a disk has damaged is read as if it were right.'),
    ('enable_indexscan', 'off', 'wrong', 'on', 'What is due is looked for by reading the whole table.'),
    ('session_replication_role', 'replica', 'wrong', 'origin', 'Triggers do not run: rows that no consumer can read get in, and unique keys are not freed.')
) f (name, setting, severity, better, why)
join pg_settings s on s.name = f.name and s.setting = f.setting
union all
select 'advice', null, format('jit_above_cost is %s', s.setting), null, 'Postgres compiles statements that take less time than their compilation.', 'alter system set jit_above_cost = 100000; select pg_reload_conf();'
from pg_settings s join pg_settings j on j.name = 'jit' and j.setting = 'on'
where s.name = 'jit_above_cost' and s.setting::float8 between 0 and 50000
union all
select 'advice', null, format('%s of max_connections = %s are in use', c.used, c.most), null,
       'The next connection is refused. A process with consumers needs up to seven, and two while they only wait.',
       'alter system set max_connections = ' || 2 * c.most || '; -- and restart; or a pooler for the other programs'
from (select count(*) as used, current_setting('max_connections')::int as most from pg_stat_activity a where a.backend_type = 'client backend') c
where c.used > 0.85 * c.most
