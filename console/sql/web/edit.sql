-- The letter goes and the message comes, or neither.
with letter as materialized (
    select d.id, d.metadata, case when q.lanes > 0 then ((d.own ->> 'keys')::text[])[1] end as key
    from trunkline.{dead} d, trunkline.queue q where q.name = $3 and d.id = $5::bigint),
gone as materialized (select l.metadata, l.key, trunkline.discard($3, array[l.id]) as n from letter l)
select (trunkline.enqueue($3, $6::text, metadata => g.metadata, key => g.key) is not null)::int::bigint as n from gone g where g.n = 1
