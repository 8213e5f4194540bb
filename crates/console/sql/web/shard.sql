-- Returns this database's shard name, and whether the shard is being drained. Enqueues avoid a
-- shard that is being drained.
select lpad(to_hex(s.number), 8, '0'), s.drains from trunkline.stripe s
