-- Adds rows of another shard to a queue, in the given order. Skips rows that the queue received
-- before, recognized by their ids in the other shard and the times of their enqueues: a server that
-- was restored to an earlier time gives ids again. Returns the added rows, with their old and
-- new ids. They are due now; the next statement of the transaction (move_due.sql) sets later due
-- times.
with given as materialized (
    select * from rows from (
        pg_catalog.unnest($3::bigint[]), pg_catalog.unnest($4::pg_catalog.timestamptz[]), pg_catalog.unnest($5::int[]), pg_catalog.unnest($6::int[]),
        pg_catalog.unnest($7::pg_catalog.text[]), pg_catalog.unnest($8::int[]), pg_catalog.unnest($9::pg_catalog.text[]), pg_catalog.unnest($10::pg_catalog.text[]),
        pg_catalog.unnest($11::pg_catalog.text[])) with ordinality
        as g(id, enqueued_at, attempt, released, error, size, payload, metadata, own, nr)
), came as (
    insert into trunkline.moved as m (source, queue, id, size, became, enqueued_at)
    select $1::int, $2::pg_catalog.text, g.id, g.size, pg_catalog.nextval('trunkline.{id_}'), g.enqueued_at from given g order by g.nr
    on conflict (source, queue, id) do update
    set size = excluded.size, became = excluded.became, enqueued_at = excluded.enqueued_at, moved_at = pg_catalog.clock_timestamp()
    where m.enqueued_at operator(pg_catalog.<>) excluded.enqueued_at -- null in a row of an earlier release
    returning m.id, m.became
)
select c.id, c.became, trunkline.{do_back_}(c.became, g.enqueued_at, g.attempt, g.released, g.error, g.size, trunkline.read_as(g.payload, null::{type_}[]),
                                            g.metadata::pg_catalog.jsonb[], g.own::pg_catalog.jsonb)::pg_catalog.text
from came c join given g on g.id operator(pg_catalog.=) c.id order by c.became
