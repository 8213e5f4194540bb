-- Runs at every scrape, and shows whether the database is reachable. Returns one catalog row for each queue. The queue's sequence counts its rows
-- by 1,024, including rows of transactions that were rolled back. A role that may not read a sequence gets no error, but no count either.
select q.name, q.paused,
       case when has_sequence_privilege(c.oid, 'select, usage') then coalesce(pg_sequence_last_value(c.oid) / 1024, 0) end
from trunkline.queue q
left join pg_class c on c.relnamespace = 'trunkline'::regnamespace and c.relkind = 'S' and c.relname = 'id_' || q.name
