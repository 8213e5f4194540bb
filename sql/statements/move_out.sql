-- Moves rows from the queue's table to trunkline.moving, for another shard, with what decides their
-- order (place). Rows that are leased, or locked by another transaction, stay. own: the values of
-- columns that users added. Payloads are written in a form that every session reads alike, whatever
-- the settings on either server.
with picked as materialized (
    select q.id, d.place
    from rows from (pg_catalog.unnest($3::bigint[]), pg_catalog.unnest($4::pg_catalog.timestamptz[])) d(id, place)
    join trunkline.{queue_} q on q.id operator(pg_catalog.=) d.id
    where q.attempt operator(pg_catalog.=) 0 or q.error is not null or q.due_at operator(pg_catalog.<=) pg_catalog.clock_timestamp()
    for update of q skip locked
), gone as (
    delete from trunkline.{queue_} q using picked p where q.id operator(pg_catalog.=) p.id
    returning p.place, q.id, q.enqueued_at, q.due_at, q.attempt, q.released, q.error, q.size, trunkline.written(q.payload) as payload,
              q.metadata::pg_catalog.text as metadata, trunkline.{do_kept_}(q.*) as own
)
insert into trunkline.moving as m (queue, target, id, enqueued_at, due_at, attempt, released, error, size, payload, metadata, own, place)
select $1::pg_catalog.text, $2::int, g.id, g.enqueued_at, g.due_at, g.attempt, g.released, g.error, g.size, g.payload, g.metadata, g.own, g.place
from gone g
returning m.id
