-- Also deletes leased messages. Their workers find the leases lost.
with gone as (delete from trunkline.{queue_} returning size) select coalesce(pg_catalog.sum(size), 0)::bigint from gone
