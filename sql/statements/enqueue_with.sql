-- As enqueue, for rows of which some message has metadata; apart, because most have none and should not pay for the column.
insert into trunkline.{queue_} (due_at, size, payload, metadata) values (trunkline.due_from($1), $2, $3, $4) returning id
