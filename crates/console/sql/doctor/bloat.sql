-- Finds indexes that are many times larger than their entries. An entry takes about 40 bytes; pages are half full at worst.
select 'advice', substr(t.relname, strpos(t.relname, '_') + 1),
       format('index %I has %s for %s rows', i.relname, pg_size_pretty(pg_relation_size(i.oid)), n.rows), null::timestamptz,
       'Free space in an index page is reused only for entries that sort into that page. An index stays as large as for its largest backlog, which has been '
           'consumed or purged since, or grows while a snapshot is held for a long time.',
       format('reindex index concurrently trunkline.%I;%s', i.relname,
              case when t.relname !~ '^(dead|archive)_'
                   then format(' -- or: trunkline compact %s, which makes the tables of the queue small, too', substr(t.relname, strpos(t.relname, '_') + 1)) else '' end)
from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
join pg_stat_user_tables s on s.relid = t.oid, lateral (
    -- A standby, and a server after a crash or a failover, has no statistics. The table has an estimate of its own, -1 if it is unknown. An
    -- estimate of no rows counts only if the table is small.
    select greatest(s.n_live_tup + s.n_dead_tup, t.reltuples::bigint, 0) as rows,
           s.n_live_tup + s.n_dead_tup > 0 or t.reltuples > 0 or t.reltuples = 0 and pg_relation_size(t.oid) < 1024 * 1024 as is_known) n
where n.is_known and t.relnamespace = 'trunkline'::regnamespace and t.relname ~ '^(queue|dead|archive|unique|line)_'
  and pg_relation_size(i.oid) > 16 * 1024 * 1024 + 200 * n.rows
order by pg_relation_size(i.oid) desc
