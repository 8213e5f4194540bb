-- As purge, for queues with keys: no key waits for what is gone.
with gone as (delete from trunkline.{queue_} returning size), lines as (delete from trunkline.{line_})
select coalesce(pg_catalog.sum(size), 0)::bigint from gone
