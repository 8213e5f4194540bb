-- Like enqueue, for queues with keys.
insert into trunkline.{queue_} (due_at, size, payload, metadata, lane, keys) values (trunkline.due_from($1), $2, $3, $4, $5, $6) returning id
