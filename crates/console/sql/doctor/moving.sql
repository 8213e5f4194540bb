-- Finds messages that a drain has taken out of their queue and that may not be on another shard yet. The table exists only where a drain has moved messages.
select 'wrong', m.queue,
       format('%s messages are on their way to shard %s, and no consumer receives them', sum(m.size), lpad(to_hex(m.target), 8, '0')), null::timestamptz,
       'The drain that moves them was interrupted, or that shard does not answer. If a drain is running now, this lasts for moments.',
       format('trunkline shard drain --move %1$s   # with the URLs of all shards; or trunkline shard resume %1$s', lpad(to_hex(s.number), 8, '0'))
from trunkline.moving m, trunkline.stripe s
group by m.queue, m.target, s.number
order by m.queue, m.target
