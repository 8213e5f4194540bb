-- Keeps delays and pending retries. A due time is never before now: the floor relies on that.
update trunkline.{queue_} q set due_at = greatest(trunkline.clock(), d.due_at)
from rows from (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::pg_catalog.timestamptz[])) d(id, due_at)
where q.id operator(pg_catalog.=) d.id and d.due_at operator(pg_catalog.>) pg_catalog.clock_timestamp()
