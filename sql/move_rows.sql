-- Rows that are on their way to a stripe.
select m.id, m.enqueued_at, m.due_at, m.attempt, m.released, m.error, m.size, m.payload, m.metadata, m.own::text
from trunkline.moving m where m.queue = $1 and m.target = $2 order by m.id limit $3
