-- Reports a shard that a drain has marked: its queues take no new messages, or soon will not.
select 'advice', null::text, format('shard %s is drained, or is being drained', lpad(to_hex(s.number), 8, '0')), null::timestamptz,
       'Programs that name several servers enqueue on the others. A program that names only this server gets an error from each enqueue once a queue is drained.',
       format('trunkline shard resume %s   # with the URLs of all shards; or leave it, if the server is to be switched off', lpad(to_hex(s.number), 8, '0'))
from trunkline.stripe s where s.drains
