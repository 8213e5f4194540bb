-- The messages of ticks, due at once.
select pg_catalog.count(*) from trunkline.tick($1::pg_catalog.text[]::pg_catalog.tid[], $2)
