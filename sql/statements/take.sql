-- A function, because its planner settings travel with it: the same plan on any connection and any table.
select id, attempt, size, enqueued_at, payload, metadata, error, released, own::pg_catalog.text from trunkline.{do_take_}($1, $2, $3, $4, true)
