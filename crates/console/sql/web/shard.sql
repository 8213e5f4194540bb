-- Returns the name of this database as a shard, and whether it is being drained, so that enqueues go to other shards.
select lpad(to_hex(s.number), 8, '0'), s.drains from trunkline.stripe s
