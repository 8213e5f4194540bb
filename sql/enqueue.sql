-- A plain insert: the cheapest thing that Postgres does durably. One row a batch, up to eight rows, one commit.
insert into trunkline.{queue_} (due_at, size, payload) values (trunkline.clock() + $1 * interval '1 second', $2, $3) returning id
