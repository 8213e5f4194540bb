-- Returns whether there are more queues than one transaction can drop.
select pg_catalog.count(*) operator(pg_catalog.>) $1 from trunkline.queue
