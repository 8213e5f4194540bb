-- Describes the functions of some queues behind one, in a transaction of their own, because of the locks. The last of them.
select pg_catalog.max(d.name) from (
    select q.name, trunkline.describe_functions(q.name) from trunkline.queue q
    where q.name operator(pg_catalog.>) $1 order by q.name limit 20) d
