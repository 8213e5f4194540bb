-- Deletes rows that the other shard now has.
delete from trunkline.moving m where m.queue operator(pg_catalog.=) $1 and m.target operator(pg_catalog.=) $2 and m.id operator(pg_catalog.=) any ($3::bigint[])
