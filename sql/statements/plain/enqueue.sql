-- A plain insert is the cheapest durable write in Postgres. Each batch is one row, and one commit
-- contains up to eight rows. A negative $1 is a time, in seconds since 1970. The due time is never
-- before now: the floor relies on that.
insert into trunkline.{queue_} (due_at, size, payload) values (trunkline.due_from($1), $2, $3) returning id
