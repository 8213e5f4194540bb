-- How large each table of each queue is, and how many dead rows its statistics know of: sizes are asked of the file system, a few calls a table. What is
-- dropped meanwhile has none.
select q.name, k.kind,
       coalesce(pg_table_size(c.oid) - t.bytes, 0), t.bytes, coalesce(pg_indexes_size(c.oid), 0),
       pg_stat_get_dead_tuples(c.oid)
from trunkline.queue q
cross join unnest(array['queue', 'dead', 'archive', 'unique', 'lane', 'line']) k (kind)
join pg_class c on c.relnamespace = 'trunkline'::regnamespace and c.relkind = 'r' and c.relname = k.kind || '_' || q.name,
lateral (select coalesce(pg_total_relation_size(nullif(c.reltoastrelid, 0)), 0) as bytes) t
order by q.name, k.kind
