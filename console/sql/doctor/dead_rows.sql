-- What died and was not cleaned away, where it is much beside what lives.
select 'wrong', substr(s.relname, strpos(s.relname, '_') + 1),
       format('table %I has %s dead rows beside %s live ones, about %s', s.relname, s.n_dead_tup, s.n_live_tup,
              pg_size_pretty((pg_table_size(s.relid) * (s.n_dead_tup::float8 / greatest(s.n_dead_tup + s.n_live_tup, 1)))::bigint)),
       greatest(s.last_autovacuum, s.last_vacuum),
       case when o.is_off
            then 'Autovacuum is turned off for this table.'
            when greatest(s.last_autovacuum, s.last_vacuum) > now() - interval '{patience}'
            then 'It was vacuumed within that time, so something holds them: see the sessions, slots, standbys and prepared transactions that are found.'
            else 'Autovacuum does not keep up: its workers are busy elsewhere, it waits too much between pages (autovacuum_vacuum_cost_delay), or a lock is in its way.' end,
       case when o.is_off
            then format('alter table trunkline.%I reset (autovacuum_enabled);', s.relname)
            else format('vacuum (verbose) trunkline.%I;', s.relname) end
from pg_stat_user_tables s join pg_class c on c.oid = s.relid, lateral (
    select exists (select from pg_options_to_table(c.reloptions) o where o.option_name = 'autovacuum_enabled' and not o.option_value::bool) as is_off) o
where s.schemaname = 'trunkline' and s.relname ~ '^(queue|dead|archive|unique|lane|line)_'
  and s.n_dead_tup > 50000 + s.n_live_tup / 2
order by s.n_dead_tup desc
