-- Checks the floor, from which a new process searches for due messages. Consumers write it every ten seconds if that helps.
select 'advice', f.queue,
       format('the kept floor of the queue is %s behind its oldest message', date_trunc('second', o.due_at - f.reached)), f.reached,
       'A process that begins reads over everything that died since then. Consumers keep the floor; those with rights that were given by hand, or in transactions of another isolation level, do not.',
       format('select trunkline.keep_floor(%L, %L);', f.queue, least(o.due_at, now()) - interval '1 minute')
from trunkline.floor f, lateral ({oldest}) o (due_at), pg_stat_user_tables s
where f.queue = {name} and s.schemaname = 'trunkline' and s.relname = 'queue_' || f.queue
  and s.n_dead_tup > 50000 and isfinite(f.reached) and f.reached < o.due_at - interval '1 hour'
