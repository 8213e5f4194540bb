-- Reads the rows of a queue once; each row stores its size, so no payload is read. The keys of dead letters and of the archive are counted by their
-- indexes. A floor that was never stored is as old as the queue; if a queue has keys, its partitions have their own floors. The last column is the
-- duration on the server, without the network.
select coalesce(sum(m.size) filter (where m.due_at <= t), 0)::bigint,
       coalesce(sum(m.size) filter (where m.due_at > t and m.attempt = 0), 0)::bigint,
       coalesce(sum(m.size) filter (where m.due_at > t and m.attempt > 0 and m.error is null), 0)::bigint,
       coalesce(sum(m.size) filter (where m.due_at > t and m.error is not null), 0)::bigint,
       (select count(*) from trunkline.{dead}),
       (select count(*) from trunkline.{archive}),
       count(m.id),
       coalesce(extract(epoch from max(t) - min(m.due_at) filter (where m.due_at <= t)), 0)::float8,
       (select greatest(0, extract(epoch from least(min(m.due_at), max(t)) - greatest(f.reached, q.created_at)))
        from trunkline.queue q join trunkline.floor f on f.queue = q.name where q.name = {name} and q.lanes = 0)::float8,
       extract(epoch from clock_timestamp() - statement_timestamp())::float8
from (select clock_timestamp() as t) clock left join trunkline.{queue} m on true
