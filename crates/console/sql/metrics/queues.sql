-- What every scrape asks, and the answer to whether the database is there: a row of the catalog for each queue. Its sequence counts its rows by 1,024, those
-- of transactions that were rolled back included; a role that may not read a sequence is not refused, but learns no count.
select q.name, q.paused,
       case when has_sequence_privilege(c.oid, 'select, usage') then coalesce(pg_sequence_last_value(c.oid) / 1024, 0) end
from trunkline.queue q
left join pg_class c on c.relnamespace = 'trunkline'::regnamespace and c.relkind = 'S' and c.relname = 'id_' || q.name
