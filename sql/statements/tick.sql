-- Enqueues the messages of ticks, due immediately.
select pg_catalog.count(*) from trunkline.tick($1::pg_catalog.text[]::pg_catalog.tid[], $2)
