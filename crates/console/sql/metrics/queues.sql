-- Runs at every scrape, and shows whether the database is reachable. Returns one catalog row for each queue. The queue's sequence counts its rows
-- by 1,024, including rows of transactions that were rolled back. A sequence that the role may not read, or that another session has locked (as an open
-- trunkline.drop_queue or alter sequence does), gives neither an error nor a wait, but no count.
select q.name, q.paused,
       case when has_sequence_privilege(c.oid, 'select, usage')
             and c.oid not in (select l.relation from pg_locks l
                               where l.database = (select d.oid from pg_database d where d.datname = current_database())
                                 and l.relation is not null and l.mode in ('ShareRowExclusiveLock', 'AccessExclusiveLock'))
            then coalesce(pg_sequence_last_value(c.oid) / 1024, 0) end,
       q.priorities
from trunkline.queue q
left join pg_class c on c.relnamespace = 'trunkline'::regnamespace and c.relkind = 'S' and c.relname = 'id_' || q.name
