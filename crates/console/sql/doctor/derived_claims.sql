-- Finds unique keys whose messages no longer exist, among the 10,000 oldest, in a queue with uniqueness. Enqueues ignore them; they only take up
-- space.
select 'advice', {name}, format('%s unique keys belong to messages that no longer exist', count(*)), null::timestamptz,
       'They take up space until another message claims the key. A partial restore or a manual change of the tables leaves them behind.',
       format('select * from trunkline.rebuild(%L);', {name})
from (select u.id from trunkline.{unique} u where u.until is null order by u.id limit 10000) u
where not exists (select from trunkline.{queue} q where q.id <= u.id and q.id >= u.id / 1024 * 1024 and q.id + q.size > u.id)
having count(*) > 0
