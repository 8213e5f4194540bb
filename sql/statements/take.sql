-- This is a function because a function can have planner settings: the plan is the same on any
-- connection and for any table. The minus asks for a last row without an id if the function stops
-- after many burials.
select id, attempt, size, enqueued_at, payload, metadata, error, released, own::pg_catalog.text
from trunkline.{do_take_}($1, $2, operator(pg_catalog.-) $3::pg_catalog.int4, $4, true)
