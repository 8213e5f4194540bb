-- Returns rows that are on their way to a shard, in their order. Rows that an earlier release has
-- moved out have no place.
select m.id, m.enqueued_at, m.due_at, m.attempt, m.released, m.error, m.size, m.payload, m.metadata, m.own::pg_catalog.text
from trunkline.moving m where m.queue operator(pg_catalog.=) $1 and m.target operator(pg_catalog.=) $2 order by m.place nulls first, m.id limit $3
