-- Records this console's numbers for all consoles; writes nothing if another console has already recorded the minute. Deletes records that are more
-- than a day old.
with old as (delete from trunkline.history h where h.minute < pg_catalog.now() - interval '1 day')
insert into trunkline.history (minute, queue, depth, oldest, came, went, died)
select pg_catalog.date_trunc('minute', pg_catalog.now()), n.queue, n.depth, n.oldest, n.came, n.went, n.died
from rows from (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::bigint[]), pg_catalog.unnest($3::float8[]), pg_catalog.unnest($4::float8[]),
                pg_catalog.unnest($5::float8[]), pg_catalog.unnest($6::float8[])) n (queue, depth, oldest, came, went, died)
on conflict do nothing
