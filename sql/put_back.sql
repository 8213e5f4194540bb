-- What was taken for a caller who went away, under the same ids.
insert into trunkline.{queue_} (id, enqueued_at, attempt, size, payload, metadata) values ($1, $2, $3, $4, $5, $6)
