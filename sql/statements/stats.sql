-- Each row stores its size, so no payload is read.
select coalesce(pg_catalog.sum(size) filter (where due_at operator(pg_catalog.<=) clock.t), 0)::bigint as due,
       coalesce(pg_catalog.sum(size) filter (where due_at operator(pg_catalog.>) clock.t and attempt operator(pg_catalog.=) 0), 0)::bigint as delayed,
       coalesce(pg_catalog.sum(size) filter (where due_at operator(pg_catalog.>) clock.t and attempt operator(pg_catalog.>) 0 and error is null), 0)::bigint as leased,
       coalesce(pg_catalog.sum(size) filter (where due_at operator(pg_catalog.>) clock.t and error is not null), 0)::bigint as to_retry,
       (select pg_catalog.count(*) from trunkline.{dead_}) as dead,
       (select pg_catalog.count(*) from trunkline.{archive_}) as archived,
       pg_catalog.count(id) as rows,
       coalesce(pg_catalog.sum(size), 0)::bigint as messages,
       extract(epoch from pg_catalog.max(clock.t) operator(pg_catalog.-) pg_catalog.min(due_at) filter (where due_at operator(pg_catalog.<=) clock.t))::pg_catalog.float8 as oldest_due_s
from (select pg_catalog.clock_timestamp() as t) clock left join trunkline.{queue_} on true
