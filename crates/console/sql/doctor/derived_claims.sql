-- For queues with uniqueness: finds unique keys that belong to messages which are gone, among the 10,000 oldest. Enqueues ignore such keys, which only take up
-- space.
select 'advice', {name}, format('%s unique keys belong to messages that are gone', count(*)), null::timestamptz,
       'They take up room until another message gets the key. A restore of parts of the database leaves them behind, or a hand in the tables.',
       format('select * from trunkline.rebuild(%L);', {name})
from (select u.id from trunkline.{unique} u where u.until is null order by u.id limit 10000) u
where not exists (select from trunkline.{queue} q where q.id <= u.id and q.id >= u.id / 1024 * 1024 and q.id + q.size > u.id)
having count(*) > 0
