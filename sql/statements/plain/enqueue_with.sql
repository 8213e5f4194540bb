-- Like enqueue, for rows that are due later, or in which at least one message has metadata. This is a
-- separate statement, because most messages should not pay for either. A negative $1 is a time, in
-- seconds since 1970. The due time is never before now: the floor relies on that.
insert into trunkline.{queue_} (due_at, size, payload, metadata) values (trunkline.due_from($1), $2, $3, $4) returning id
