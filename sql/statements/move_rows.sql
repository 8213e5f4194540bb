-- Returns rows that are on their way to a shard.
select m.id, m.enqueued_at, m.due_at, m.attempt, m.released, m.error, m.size, m.payload, m.metadata, m.own::pg_catalog.text
from trunkline.moving m where m.queue operator(pg_catalog.=) $1 and m.target operator(pg_catalog.=) $2 order by m.id limit $3
