-- A plain insert: the cheapest thing that Postgres does durably. One row a batch, up to eight rows, one commit. A negative $1 is a time, in seconds
-- since 1970; never due before now, on which the floor rests.
insert into trunkline.{queue_} (due_at, size, payload) values (trunkline.due_from($1), $2, $3) returning id
