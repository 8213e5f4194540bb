-- Counts messages that are on their way to other shards, by queue and shard.
select m.queue, m.target, pg_catalog.sum(m.size)::bigint as messages from trunkline.moving m group by m.queue, m.target order by m.queue, m.target
