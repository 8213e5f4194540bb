-- Checks what is derived from the messages of a queue with keys. Finds a backlog that no worker finds, because it is not in the list of backlogs; and
-- rows in a partition that the queue does not have, or in the partition of another key. Reads a few index entries for each backlog, up to 1,000, and
-- the 1,000 oldest rows.
with recursive backlog as (
    (select q.lane, q.line from trunkline.{queue} q order by q.lane, q.line limit 1)
    union all
    select n.lane, n.line from backlog b, lateral (
        select q.lane, q.line from trunkline.{queue} q where (q.lane, q.line) > (b.lane, b.line) order by q.lane, q.line limit 1) n
), found as (
    select 1 as rank, format('%s keys have a backlog that no worker finds; the first is %L', count(*), left(min(b.line), 100)) as what
    from (select * from backlog limit 1000) b
    where b.line <> '' and not exists (select from trunkline.{line} l where l.lane = b.lane and l.key = b.line) having count(*) > 0
    union all
    select 2, format('messages are in partition %s, which the queue does not have', min(b.lane))
    from (select * from backlog limit 1000) b, trunkline.queue k
    where k.name = {name} and (b.lane < k.first_lane or b.lane >= k.first_lane + k.lanes) having count(*) > 0
    union all
    select 3, format('partition %s of the queue is missing', min(n.lane))
    from trunkline.queue k, generate_series(k.first_lane::int, k.first_lane + k.lanes - 1) n (lane)
    where k.name = {name} and not exists (select from trunkline.{lane} h where h.lane = n.lane) having count(*) > 0
    union all
    select 4, format('message %s is in the partition of another key', min(r.id))
    from (select q.id, q.lane, q.keys from trunkline.{queue} q order by q.id limit 1000) r, trunkline.queue k
    where k.name = {name} and exists (select from unnest(r.keys) u (key) where k.first_lane + trunkline.lane_of(u.key, k.lanes) is distinct from r.lane) having count(*) > 0
)
select 'wrong', {name}, f.what, null::timestamptz,
       'These messages are never delivered, or messages of one key are handled at the same time.',
       format('select * from trunkline.rebuild(%L);', {name})
from found f order by f.rank
