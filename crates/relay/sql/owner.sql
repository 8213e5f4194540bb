-- Whose relay a name is, among those of a queue.
select queue, broker, inward from trunkline.relay where name operator(pg_catalog.=) $1 and queue operator(pg_catalog.=) $2
