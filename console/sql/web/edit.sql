-- The letter goes and the message comes, or neither.
with letter as materialized (select f.metadata, f.priority, f.key from trunkline.find($3, $5::bigint) f where f.state = 'dead'),
gone as materialized (select l.*, trunkline.discard($3, array[$5::bigint]) as n from letter l)
select (trunkline.enqueue($3, $6::text, metadata => g.metadata, priority => g.priority, key => g.key) is not null)::int::bigint as n from gone g where g.n = 1
