-- Keeps delays and pending retries, also of rows that were split for their partitions. A key waits
-- for its retry. A due time is never before the time at which the transaction added the row: the
-- floor relies on that. Comparing with that time keeps the order of the rows.
with moved as (
    update trunkline.{queue_} q
    set due_at = d.due_at, place = case when q.error is null then d.due_at else q.place end
    from rows from (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::int[]), pg_catalog.unnest($3::pg_catalog.timestamptz[])) d(id, size, due_at)
    where q.id operator(pg_catalog.>=) d.id and q.id operator(pg_catalog.<) (d.id operator(pg_catalog.+) d.size)
      and d.due_at operator(pg_catalog.>) q.due_at
    returning q.id, q.size, q.error
), held as (
    select pg_catalog.array_agg(m.id) as ids, pg_catalog.array_agg(m.size) as sizes from moved m where m.error is not null
)
select trunkline.{do_hold_}(h.ids, h.sizes)::pg_catalog.text from held h, trunkline.queue k
where h.ids is not null and k.name operator(pg_catalog.=) $4 and k.per_key operator(pg_catalog.=) 1
