-- A message that was taken for a caller who went away, as it was, under the same id.
insert into trunkline.{queue_} (id, enqueued_at, attempt, released, error, size, payload, metadata) values ($1, $2, $3, $4, $5, $6, $7, $8)
