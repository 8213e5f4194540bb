-- Finds indexes that exist but are not used, such as those that an interrupted `reindex concurrently` leaves behind, and indexes and primary keys that
-- are missing.
select 'wrong', substr(t.relname, strpos(t.relname, '_') + 1), format('index %I is not valid', i.relname), null::timestamptz,
       'PostgreSQL maintains this index but never reads it.',
       format('reindex index concurrently trunkline.%I; -- or drop it, if its name ends with _ccnew or _ccold', i.relname)
from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
where t.relnamespace = 'trunkline'::regnamespace and not (x.indisvalid and x.indisready)
union all
select 'wrong', q.name, format('index %I is missing', e.kind || q.name), null, e.why,
       format('create index concurrently %I on trunkline.%I (%s)%s;', e.kind || q.name, c.relname, e.columns, e.rows)
from trunkline.queue q cross join lateral (
    select 'queue_' as place, 'due_' as kind, case when q.priorities > 1 then 'lane, ' else '' end || 'due_at, (id + 0)' as columns, '' as rows,
           'Each dequeue reads the whole table to find due messages.' as why
    union all
    select 'queue_', 'place_', 'lane, line, place, (id + 0)', '', 'Each dequeue reads the whole table to find due messages.' where q.lanes > 0
    union all
    select 'queue_', 'leased_', 'due_at', ' where attempt > 0 and error is null', 'Each dequeue reads the whole table to count leased messages.'
    where q.max_leased is not null
    union all
    select 'archive_', 'age_', 'archived_at', '', 'Each prune reads the whole archive.'
    union all
    select 'unique_', 'uniqueid_', 'id', ' where until is null', 'Each end of a message reads all unique keys.' where q.uniqueness) e
join pg_class c on c.relnamespace = 'trunkline'::regnamespace and c.relkind = 'r' and c.relname = e.place || q.name
where to_regclass(format('trunkline.%I', e.kind || q.name)) is null
union all
select 'wrong', q.name, format('table %I has no primary key', c.relname), null,
       'Calls that name a row by its key read the whole table, and nothing prevents two rows with one key.',
       format('create unique index concurrently %1$I on trunkline.%2$I (%3$s); alter table trunkline.%2$I add constraint %1$I primary key using index %1$I;',
              k.kind || q.name, c.relname, k.columns)
from trunkline.queue q
cross join (values ('queue_', 'key_', 'id'), ('dead_', 'deadkey_', 'id'), ('archive_', 'archivekey_', 'id'), ('unique_', 'uniquekey_', 'key'),
                   ('lane_', 'lanekey_', 'lane'), ('line_', 'linekey_', 'lane, key')) k (place, kind, columns)
join pg_class c on c.relnamespace = 'trunkline'::regnamespace and c.relkind = 'r' and c.relname = k.place || q.name
where not exists (select from pg_index x where x.indrelid = c.oid and x.indisprimary)
order by 3
