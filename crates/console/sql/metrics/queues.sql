-- The query of every scrape, which also shows that the database is reachable: one row of the catalog per queue. The sequence counts the queue's rows by 1,024,
-- including those of transactions that were rolled back. A role that may not read a sequence is not refused, but gets no count.
select q.name, q.paused,
       case when has_sequence_privilege(c.oid, 'select, usage') then coalesce(pg_sequence_last_value(c.oid) / 1024, 0) end
from trunkline.queue q
left join pg_class c on c.relnamespace = 'trunkline'::regnamespace and c.relkind = 'S' and c.relname = 'id_' || q.name
