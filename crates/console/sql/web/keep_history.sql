-- Stores what this console sees, for all consoles. Stores nothing for a minute that another console has already written. Deletes what is older than a day.
with old as (delete from trunkline.history h where h.minute < pg_catalog.now() - interval '1 day')
insert into trunkline.history (minute, queue, depth, oldest, came, went, died)
select pg_catalog.date_trunc('minute', pg_catalog.now()), n.queue, n.depth, n.oldest, n.came, n.went, n.died
from rows from (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::bigint[]), pg_catalog.unnest($3::float8[]), pg_catalog.unnest($4::float8[]),
                pg_catalog.unnest($5::float8[]), pg_catalog.unnest($6::float8[])) n (queue, depth, oldest, came, went, died)
on conflict do nothing
