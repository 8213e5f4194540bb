-- Returns the size of each table of each queue, and the dead rows that its statistics report. For a size the server asks the file system, a few calls per
-- table, under a lock that readers take. A table that a session has locked against readers, or is about to lock, is left out, so that one table does not hide
-- all others. A table that is dropped in the meantime has no size.
select q.name, k.kind,
       coalesce(pg_table_size(c.oid) - t.bytes, 0), t.bytes, coalesce(pg_indexes_size(c.oid), 0),
       pg_stat_get_dead_tuples(c.oid)
from trunkline.queue q
cross join unnest(array['queue', 'dead', 'archive', 'unique', 'lane', 'line']) k (kind)
join pg_class c on c.relnamespace = 'trunkline'::regnamespace and c.relkind = 'r' and c.relname = k.kind || '_' || q.name,
lateral (select coalesce(pg_total_relation_size(nullif(c.reltoastrelid, 0)), 0) as bytes) t
where c.oid not in (
    select coalesce(i.indrelid, l.relation) from pg_locks l left join pg_index i on i.indexrelid = l.relation
    where l.mode = 'AccessExclusiveLock' and l.relation is not null and l.pid <> pg_backend_pid()
      and l.database = (select d.oid from pg_database d where d.datname = current_database()))
order by q.name, k.kind
