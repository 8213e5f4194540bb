-- Deletes the letter and enqueues the message, or does neither.
with letter as materialized (select f.metadata, f.priority, f.key from trunkline.find($3, $6::bigint) f where f.state = 'dead'),
gone as materialized (select l.*, trunkline.discard($3, array[$6::bigint]) as n from letter l)
select trunkline.enqueue($3, $7::text, metadata => g.metadata, priority => g.priority, key => g.key) as id, 1::bigint as n from gone g where g.n = 1
