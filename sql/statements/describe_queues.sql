-- Drops outdated functions of the next queues by name, removes the descriptions that the others have
-- from earlier releases, and sets how the queues' tables are vacuumed. Runs in a separate transaction because of the locks. Returns the name of the
-- last queue, and the names of the queues whose tables were locked.
select pg_catalog.max(d.name), pg_catalog.array_agg(d.name) filter (where not d.is_set) from (
    select q.name, trunkline.describe_functions(q.name), trunkline.set_vacuum(q.name) as is_set from trunkline.queue q
    where q.name operator(pg_catalog.>) $1 order by q.name limit 20) d
