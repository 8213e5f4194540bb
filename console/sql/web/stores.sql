-- The bytes of each queue's tables, and how many rows it ever had: its sequence counts them by 1,024. A role that may not read a sequence is not
-- refused: it learns no rates.
select q.name,
       coalesce((select sum(pg_total_relation_size(c.oid))::bigint from pg_class c
                 where c.relnamespace = 'trunkline'::regnamespace
                   and c.relname in ('queue_' || q.name, 'dead_' || q.name, 'archive_' || q.name)), 0),
       coalesce((select pg_sequence_last_value(c.oid) / 1024 from pg_class c
                 where c.relnamespace = 'trunkline'::regnamespace and c.relkind = 'S' and c.relname = 'id_' || q.name
                   and has_sequence_privilege(c.oid, 'select, usage')), 0)
from trunkline.queue q
