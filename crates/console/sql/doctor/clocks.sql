-- Finds times of a queue that cannot be right, because a clock that was ahead wrote them. Examines only the messages that are due last.
select 'wrong', {name}, left(string_agg(t.what, '; ' order by t.what), 500), null::timestamptz,
       'The server''s clock was ahead, and was set back. What it has written means a time that is still to come: messages wait for it, lanes, keys and limits are held until then.',
       format('select trunkline.repair_times(%L);', {name})
from (
    select format('%s messages were enqueued in the future, until %s', count(*), max(m.enqueued_at)) as what
    from ({last}) m where m.enqueued_at > now() + interval '1 minute' having count(*) > 0
    union all
    select format('%s leases end later than any can, at %s', count(*), max(m.due_at))
    from ({last}) m where m.attempt > 0 and m.error is null and m.due_at > now() + interval '366 days' having count(*) > 0
    union all
    select format('the floor was kept at %s', greatest(f.reached, f.shown)) from trunkline.floor f
    where f.queue = {name} and greatest(f.reached, f.shown) > now() + interval '1 minute'
    union all
    select format('the bucket of its limit was filled at %s', b.filled_at) from trunkline.bucket b
    where b.queue = {name} and b.filled_at > now() + interval '1 minute'
    {of_keys}) t
having count(*) > 0
union all
select 'advice', {name}, format('%s messages are leased for longer than a day and ten times the queue''s lease, until %s', count(*), max(m.due_at)), null,
       'No other consumer gets them before. Where that is not meant, a clock was ahead when they were leased, or a consumer asked for too long a lease and died.',
       format('select trunkline.repair_times(%L); -- ends them with the queue''s lease', {name})
from ({last}) m join trunkline.queue q on q.name = {name}
where m.attempt > 0 and m.error is null and m.due_at > now() + greatest(interval '1 day', 10 * q.lease) and m.due_at <= now() + interval '366 days'
  and m.enqueued_at <= now() + interval '1 minute'
having count(*) > 0
