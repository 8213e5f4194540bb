-- Reads without locking; whole batches, of which the caller shows as many messages as it was asked for.
select id, enqueued_at, due_at, attempt, error, size, payload
from trunkline.{queue_} where (due_at, id + 0) > ($1, $2) order by due_at, id + 0 limit $3
