-- Whether there are more queues than one transaction drops.
select pg_catalog.count(*) operator(pg_catalog.>) $1 from trunkline.queue
