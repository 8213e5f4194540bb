-- Reports dead rows that were not cleaned away and are many compared with the live ones. In a busy queue many rows die between two vacuums. So the rows count
-- only if the last vacuum, or the queue's creation, is longer ago than the patience, or if a vacuum ran and a transaction that is older than it holds the
-- rows.
select 'wrong', substr(s.relname, strpos(s.relname, '_') + 1),
       format('table %I has %s dead rows beside %s live ones, about %s', s.relname, s.n_dead_tup, s.n_live_tup,
              pg_size_pretty((pg_table_size(s.relid) * (s.n_dead_tup::float8 / greatest(s.n_dead_tup + s.n_live_tup, 1)))::bigint)),
       greatest(s.last_autovacuum, s.last_vacuum),
       case when o.is_off
            then 'Autovacuum is turned off for this table.'
            when v.is_held
            then 'It was vacuumed within that time, so something holds them: see the sessions, slots, standbys and prepared transactions that are found.'
            else 'Autovacuum does not keep up: its workers are busy elsewhere, it waits too much between pages (autovacuum_vacuum_cost_delay), or a lock is in its way.' end,
       case when o.is_off
            then format('alter table trunkline.%I reset (autovacuum_enabled);', s.relname)
            else format('vacuum (verbose) trunkline.%I;', s.relname) end
from pg_stat_user_tables s join pg_class c on c.oid = s.relid, lateral (
    select exists (select from pg_options_to_table(c.reloptions) o where o.option_name = 'autovacuum_enabled' and not o.option_value::bool) as is_off) o, lateral (
    select greatest(s.last_autovacuum, s.last_vacuum) as at,
           coalesce(greatest(s.last_autovacuum, s.last_vacuum), (select q.created_at from trunkline.queue q where q.name = substr(s.relname, strpos(s.relname, '_') + 1)),
                    '-infinity') as since) l, lateral (
    select exists (select from pg_stat_activity a where a.datname = current_database() and a.backend_xmin is not null and a.xact_start < l.at)
        or exists (select from pg_prepared_xacts p where p.database = current_database() and p.prepared < l.at)
        or exists (select from pg_replication_slots r where r.xmin is not null)
        or exists (select from pg_stat_replication r where r.backend_xmin is not null) as is_held) v
where s.schemaname = 'trunkline' and s.relname ~ '^(queue|dead|archive|unique|lane|line)_'
  and s.n_dead_tup > 50000 + s.n_live_tup / 2
  and (o.is_off or v.is_held or l.since < now() - interval '{patience}')
order by s.n_dead_tup desc
