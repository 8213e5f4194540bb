-- Finds queues whose payloads are lost, because their type was dropped with all columns of that type.
select 'wrong', q.name, format('table %I has no column payload any more: the type of the payloads was dropped', 'queue_' || q.name), null::timestamptz,
       'The payloads of all messages are lost, and every enqueue and dequeue fails.',
       format('select trunkline.drop_queue(%L); -- then create the queue again, or restore a backup', q.name)
from trunkline.queue q join pg_class c on c.relnamespace = 'trunkline'::regnamespace and c.relkind = 'r' and c.relname = 'queue_' || q.name
where not exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'payload' and not a.attisdropped)
order by q.name
