-- A worker adds a report and removes old ones of all queues, because nothing else removes them.
insert into trunkline.worker (worker, queue, process, version, started_at, ended, seconds, handled, failed, running, hands, p50, p99)
select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13 from trunkline.forget_workers()
