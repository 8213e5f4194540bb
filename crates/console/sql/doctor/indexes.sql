-- Finds indexes that exist but are not used, such as those that an interrupted `reindex concurrently` leaves behind, and indexes that are missing.
select 'wrong', substr(t.relname, strpos(t.relname, '_') + 1), format('index %I is not valid', i.relname), null::timestamptz,
       'PostgreSQL maintains this index but never reads it.',
       format('reindex index concurrently trunkline.%I; -- or drop it, if its name ends with _ccnew or _ccold', i.relname)
from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
where t.relnamespace = 'trunkline'::regnamespace and not (x.indisvalid and x.indisready)
union all
select 'wrong', q.name, format('index %I is missing', e.index), null::timestamptz,
       'Each dequeue reads the whole table to find due messages.',
       format('create index concurrently %I on trunkline.%I (%s);', e.index, 'queue_' || q.name, e.columns)
from trunkline.queue q, lateral (
    select 'due_' || q.name as index, case when q.priorities > 1 then 'lane, ' else '' end || 'due_at, (id + 0)' as columns
    union all select 'place_' || q.name, 'lane, line, place, (id + 0)' where q.lanes > 0) e
where to_regclass(format('trunkline.%I', e.index)) is null
order by 3
