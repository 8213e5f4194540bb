-- Drops and describes functions of the next queues by name, and sets how their tables are vacuumed, in a separate transaction because of the locks.
-- Returns the name of the last one.
select pg_catalog.max(d.name) from (
    select q.name, trunkline.describe_functions(q.name), trunkline.set_vacuum(q.name) from trunkline.queue q
    where q.name operator(pg_catalog.>) $1 order by q.name limit 20) d
