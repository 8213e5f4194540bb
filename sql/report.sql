-- A worker tells of itself, and removes what is old: of all queues, because nobody else does.
with old as (
    delete from trunkline.worker w
    where w.ctid = any (array(
        select o.ctid from trunkline.worker o where o.at < now() - interval '1 hour' order by o.at limit 1000)))
insert into trunkline.worker (worker, queue, process, version, started_at, ended, seconds, handled, failed, running, hands, p50, p99)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
