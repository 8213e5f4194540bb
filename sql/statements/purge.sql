-- Also deletes leased messages: their workers find the lease lost.
with gone as (delete from trunkline.{queue_} returning size) select coalesce(pg_catalog.sum(size), 0)::bigint from gone
