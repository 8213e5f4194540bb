-- Finds indexes that are many times larger than their entries need. An entry takes some 40 bytes; in the worst case pages are half full.
select 'advice', substr(t.relname, strpos(t.relname, '_') + 1),
       format('index %I has %s for %s rows', i.relname, pg_size_pretty(pg_relation_size(i.oid)), s.n_live_tup + s.n_dead_tup), null::timestamptz,
       'Pages that became empty are used again only for entries that belong there. A long snapshot leaves an index like this behind.',
       format('reindex index concurrently trunkline.%I;', i.relname)
from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
join pg_stat_user_tables s on s.relid = t.oid
where t.relnamespace = 'trunkline'::regnamespace and t.relname ~ '^(queue|dead|archive|unique|line)_'
  and pg_relation_size(i.oid) > 16 * 1024 * 1024 + 200 * (s.n_live_tup + s.n_dead_tup)
order by pg_relation_size(i.oid) desc
