-- Takes rows out of a queue for another stripe, with all that they have, behind an id. What is leased, or locked by somebody, stays. By id, because that
-- index is there whether a queue has priorities or not. The statement in $5 reads the columns that a queue with priorities has more.
with picked as materialized (
    select q.id from trunkline.{queue_} q
    where q.id > $3::bigint and (q.attempt = 0 or q.error is not null or q.due_at <= clock_timestamp())
    order by q.id limit $4::int for update skip locked
), gone as (
    delete from trunkline.{queue_} q using picked p where q.id = p.id
    returning q.id, q.enqueued_at, q.due_at, q.attempt, q.released, q.error, q.size, q.payload::text as payload, q.metadata::text as metadata,
              coalesce(case when trunkline.{do_own_}() is not null then trunkline.own(trunkline.{do_own_}(), q.*) end, jsonb_build_object())
              || coalesce(case when $5::text is not null then trunkline.own($5::text, q.*) end, jsonb_build_object()) as own
)
insert into trunkline.moving as m (queue, target, id, enqueued_at, due_at, attempt, released, error, size, payload, metadata, own)
select $1::text, $2::int, g.id, g.enqueued_at, g.due_at, g.attempt, g.released, g.error, g.size, g.payload, g.metadata, nullif(g.own, jsonb_build_object())
from gone g
returning m.id
