-- Returns how long the oldest due message has been due, and whether there are dead letters: what has to be known soon, also of a queue that takes long
-- to count. Reads the index once for each priority, from the stored floor on. The last column is the duration on the server.
select coalesce(extract(epoch from max(clock.t - m.due_at) filter (where m.due_at <= clock.t)), 0)::float8,
       exists (select from trunkline.{dead}),
       extract(epoch from clock_timestamp() - statement_timestamp())::float8
from (select clock_timestamp() as t) clock cross join generate_series(0, {last}) p (lane)
left join lateral (
    select q.due_at from trunkline.{queue} q
    where {in_lane} and q.due_at >= coalesce((select f.reached from trunkline.floor f where f.queue = {name} and f.reached <= now()), '-infinity')
    order by q.due_at, q.id + 0 limit 1) m on true
