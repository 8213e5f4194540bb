-- Like purge, for queues with keys: also removes the backlogs of keys, so that no key waits for a deleted message.
with gone as (delete from trunkline.{queue_} returning size), lines as (delete from trunkline.{line_})
select coalesce(pg_catalog.sum(size), 0)::bigint from gone
