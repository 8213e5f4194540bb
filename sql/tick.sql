-- The messages of ticks, due at once.
select count(*) from trunkline.tick($1::text[]::tid[], $2)
