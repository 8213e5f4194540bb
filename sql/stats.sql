-- Sizes stand in the row, so no payload is read back.
select coalesce(sum(size) filter (where due_at <= t), 0)::bigint as due,
       coalesce(sum(size) filter (where due_at > t and attempt = 0), 0)::bigint as delayed,
       coalesce(sum(size) filter (where due_at > t and attempt > 0 and error is null), 0)::bigint as leased,
       coalesce(sum(size) filter (where due_at > t and error is not null), 0)::bigint as to_retry,
       (select count(*) from trunkline.{dead_}) as dead,
       (select count(*) from trunkline.{archive_}) as archived,
       count(id) as rows,
       coalesce(sum(size), 0)::bigint as messages,
       extract(epoch from max(t) - min(due_at) filter (where due_at <= t))::float8 as oldest_due_s
from (select clock_timestamp() as t) clock left join trunkline.{queue_} on true
