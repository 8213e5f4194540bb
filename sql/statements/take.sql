-- This is a function because a function can have planner settings: the plan is the same on any
-- connection and for any table.
select id, attempt, size, enqueued_at, payload, metadata, error, released, own::pg_catalog.text from trunkline.{do_take_}($1, $2, $3, $4, true)
