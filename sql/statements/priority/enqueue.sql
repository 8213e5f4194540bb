-- Like enqueue, for queues with priorities, each of which has a lane.
insert into trunkline.{queue_} (due_at, size, payload, metadata, lane) values (trunkline.due_from($1), $2, $3, $4, $5) returning id
