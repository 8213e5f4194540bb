-- One row per message.
create or replace view trunkline.{messages_} as
select q.id + m.k as id, q.enqueued_at, q.due_at, q.attempt, q.error, m.payload, m.metadata, 0 as priority, q.keys[m.k + 1] as key
from trunkline.{queue_} q,
     lateral (select generate_series(0, q.size - 1) as k, unnest(q.payload) as payload, unnest(q.metadata) as metadata) m;
