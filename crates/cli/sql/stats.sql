-- Counts one queue, like the library's statement of the same name; several are joined by "union all". Each row stores its size, so no payload is read.
select '{name}'::text as queue,
       coalesce(sum(size) filter (where due_at <= t), 0)::bigint as due,
       coalesce(sum(size) filter (where due_at > t and attempt = 0), 0)::bigint as delayed,
       coalesce(sum(size) filter (where due_at > t and attempt > 0 and error is null), 0)::bigint as leased,
       coalesce(sum(size) filter (where due_at > t and error is not null), 0)::bigint as to_retry,
       (select count(*) from trunkline."dead_{name}") as dead,
       (select count(*) from trunkline."archive_{name}") as archived,
       count(id) as rows,
       coalesce(sum(size), 0)::bigint as messages,
       extract(epoch from max(t) - min(due_at) filter (where due_at <= t))::float8 as oldest_due_s
from (select clock_timestamp() as t) clock left join trunkline."queue_{name}" on true
