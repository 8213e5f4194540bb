-- Finds tables with many dead rows compared to live ones. Many rows die between two vacuums of a busy queue. So they count only in two cases. The
-- last vacuum, or the queue's creation, is longer ago than the patience; or a vacuum ran, but a transaction from before it still holds the rows.
select 'wrong', substr(s.relname, strpos(s.relname, '_') + 1),
       format('table %I has %s dead rows and %s live rows; the dead ones take about %s', s.relname, s.n_dead_tup, s.n_live_tup,
              pg_size_pretty((pg_table_size(s.relid) * (s.n_dead_tup::float8 / greatest(s.n_dead_tup + s.n_live_tup, 1)))::bigint)),
       greatest(s.last_autovacuum, s.last_vacuum),
       case when o.is_off
            then 'Autovacuum is turned off for this table.'
            when v.is_held
            then 'A vacuum ran, but an old transaction holds the rows: see the findings about sessions, slots, standbys and prepared transactions.'
                 || coalesce(' The table cannot be compacted either while ' || u.who || '.',
                             case when s.relname !~ '^(dead|archive)_' then ' A compaction removes them, and may stop the queue for up to ten seconds.' end, '')
            else 'Autovacuum does not keep up: its workers are busy elsewhere, its cost delay is too long (autovacuum_vacuum_cost_delay), or a lock blocks it.' end,
       case when o.is_off
            then format('alter table trunkline.%I reset (autovacuum_enabled);', s.relname)
            when v.is_held and s.relname !~ '^(dead|archive)_'
            then format('select freed, refused from trunkline.compact(%L, max_pause => ''10 s'');', substr(s.relname, strpos(s.relname, '_') + 1))
            else format('vacuum (verbose) trunkline.%I;', s.relname) end
from pg_stat_user_tables s join pg_class c on c.oid = s.relid, lateral (
    select exists (select from pg_options_to_table(c.reloptions) o where o.option_name = 'autovacuum_enabled' and not o.option_value::bool) as is_off) o, lateral (
    select greatest(s.last_autovacuum, s.last_vacuum) as at,
           coalesce(greatest(s.last_autovacuum, s.last_vacuum), (select q.created_at from trunkline.queue q where q.name = substr(s.relname, strpos(s.relname, '_') + 1)),
                    '-infinity') as since) l, lateral (
    select l.at is not null and (exists (select from pg_stat_activity a where a.datname = current_database() and a.backend_xmin is not null and a.xact_start < l.at
                     and not exists (select from pg_stat_progress_vacuum w where w.pid = a.pid))
        or exists (select from pg_prepared_xacts p where p.database = current_database() and p.prepared < l.at)
        -- A standby with hot_standby_feedback always has some transaction, so only old ones count.
        or exists (select from pg_replication_slots r where age(r.xmin) > 100000)
        or exists (select from pg_stat_replication r where age(r.backend_xmin) > 100000)) as is_held) v
left join lateral (
    select format('session %s (%s) has an open transaction that used the table', k.pid, coalesce(nullif(a.application_name, ''), 'no application name')) as who
    from pg_locks k join pg_stat_activity a on a.pid = k.pid
    where k.relation = s.relid and k.database = (select d.oid from pg_database d where d.datname = current_database())
      and a.xact_start < now() - interval '10 s' and s.relname !~ '^(dead|archive)_'
    order by a.xact_start limit 1) u on true
where s.schemaname = 'trunkline' and s.relname ~ '^(queue|dead|archive|unique|lane|line)_'
  and s.n_dead_tup > 50000 + s.n_live_tup / 2
  and (o.is_off or v.is_held or l.since < now() - interval '{patience}')
order by s.n_dead_tup desc
