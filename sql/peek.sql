-- Reads without locking; whole batches, of which the caller shows as many messages as it was asked for.
select id, enqueued_at, due_at, attempt, error, size, payload, metadata from trunkline.{do_peek_}($1, $2, $3)
