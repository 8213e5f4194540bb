-- Finds times of a queue that cannot be right, because they were written while a clock was ahead. Checks the messages that are due last.
select 'wrong', {name}, left(string_agg(t.what, '; ' order by t.what), 500), null::timestamptz,
       'The server''s clock was ahead and was set back. The times that it wrote are still in the future, and messages, partitions, keys and limits wait for them.',
       format('select trunkline.repair_times(%L);', {name})
from (
    select format('%s messages were enqueued in the future, the last at %s', count(*), max(m.enqueued_at)) as what
    from ({last}) m where m.enqueued_at > now() + interval '1 minute' having count(*) > 0
    union all
    select format('%s leases end later than any lease can, the last at %s', count(*), max(m.due_at))
    from ({last}) m where m.attempt > 0 and m.error is null and m.due_at > now() + interval '366 days' having count(*) > 0
    union all
    select format('the stored floor has the time %s', greatest(f.reached, f.shown)) from trunkline.floor f
    where f.queue = {name} and greatest(f.reached, f.shown) > now() + interval '1 minute'
    union all
    select format('the bucket of its rate limit was filled at %s', b.filled_at) from trunkline.bucket b
    where b.queue = {name} and b.filled_at > now() + interval '1 minute'
    {of_keys}) t
having count(*) > 0
union all
select 'advice', {name}, format('%s messages are leased for more than a day and more than ten times the queue''s lease, until %s', count(*), max(m.due_at)), null,
       'No other consumer gets them before that. If this is not intended, a clock was ahead when they were leased, or a consumer leased them for too long and died.',
       format('select trunkline.repair_times(%L); -- shortens them to the queue''s lease', {name})
from ({last}) m join trunkline.queue q on q.name = {name}
where m.attempt > 0 and m.error is null and m.due_at > now() + greatest(interval '1 day', 10 * q.lease) and m.due_at <= now() + interval '366 days'
  and m.enqueued_at <= now() + interval '1 minute'
having count(*) > 0
