-- Like enqueue, for rows in which at least one message has metadata. This is a separate statement,
-- because most messages have no metadata and should not pay for the column.
insert into trunkline.{queue_} (due_at, size, payload, metadata) values (trunkline.due_from($1), $2, $3, $4) returning id
