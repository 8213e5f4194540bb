-- What was delayed, or is to be retried, stays so. Never due before now, on which the floor rests.
update trunkline.{queue_} q set due_at = greatest(trunkline.clock(), d.due_at)
from rows from (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::pg_catalog.timestamptz[])) d(id, due_at)
where q.id operator(pg_catalog.=) d.id and d.due_at operator(pg_catalog.>) pg_catalog.clock_timestamp()
