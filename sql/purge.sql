-- Leased messages too: their workers will find the lease lost.
with gone as (delete from trunkline.{queue_} returning size) select coalesce(sum(size), 0)::bigint from gone
