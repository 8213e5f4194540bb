-- Finds queues whose reporting workers fail for many messages. These are retried or dead, so the queue looks busy but makes no progress.
select case when w.failed * 2 >= w.handled then 'wrong' else 'advice' end, w.queue,
       pg_catalog.format('of %s messages that its workers handled within %s, %s failed', w.handled, greatest(interval '{patience}', interval '1 minute'), w.failed),
       w.since,
       'A failed message is retried until its attempts are exhausted, and then becomes a dead letter.',
       pg_catalog.format('select f.error, pg_catalog.count(*) from trunkline.messages(%L) f where f.error is not null group by 1 order by 2 desc;', w.queue)
from (select r.queue, pg_catalog.sum(r.handled) as handled, pg_catalog.sum(r.failed) as failed,
             pg_catalog.min(r.at) filter (where r.failed > 0) as since
      from trunkline.worker r where r.at > pg_catalog.now() - greatest(interval '{patience}', interval '1 minute') group by 1) w
where w.failed >= 10 and w.failed * 10 >= w.handled
order by w.queue
