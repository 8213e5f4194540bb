-- Moves rows after an id from the queue's table to trunkline.moving, for another shard. Rows that
-- are leased, or locked by another transaction, stay. Rows are read by id, because that index
-- exists whether or not a queue has priorities. own: the values of columns that users added.
-- Payloads are written in a form that every session reads alike, whatever the settings on either
-- server.
with picked as materialized (
    select q.id from trunkline.{queue_} q
    where q.id operator(pg_catalog.>) $3::bigint
      and (q.attempt operator(pg_catalog.=) 0 or q.error is not null or q.due_at operator(pg_catalog.<=) pg_catalog.clock_timestamp())
    order by q.id limit $4::int for update skip locked
), gone as (
    delete from trunkline.{queue_} q using picked p where q.id operator(pg_catalog.=) p.id
    returning q.id, q.enqueued_at, q.due_at, q.attempt, q.released, q.error, q.size, trunkline.written(q.payload) as payload,
              q.metadata::pg_catalog.text as metadata, trunkline.{do_kept_}(q.*) as own
)
insert into trunkline.moving as m (queue, target, id, enqueued_at, due_at, attempt, released, error, size, payload, metadata, own)
select $1::pg_catalog.text, $2::int, g.id, g.enqueued_at, g.due_at, g.attempt, g.released, g.error, g.size, g.payload, g.metadata, g.own
from gone g
returning m.id
