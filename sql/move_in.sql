-- Gives a queue the rows of another stripe, in their order. Those that it was given before are passed over, by their ids there. Returns the others,
-- with their ids here. They are due now: what is due later is told so next (move_due.sql), in the same transaction.
with given as materialized (
    select * from unnest($3::bigint[], $4::timestamptz[], $5::int[], $6::int[], $7::text[], $8::int[], $9::text[], $10::text[], $11::text[])
        as g(id, enqueued_at, attempt, released, error, size, payload, metadata, own)
), came as (
    insert into trunkline.moved as m (source, queue, id, size, became)
    select $1::int, $2::text, g.id, g.size, nextval('trunkline.{id_}') from given g order by g.id
    on conflict do nothing returning m.id, m.became
)
select c.id, c.became, trunkline.{do_back_}(c.became, g.enqueued_at, g.attempt, g.released, g.error, g.size, g.payload::{type_}[],
                                            g.metadata::jsonb[], g.own::jsonb)::text
from came c join given g on g.id = c.id order by c.became
