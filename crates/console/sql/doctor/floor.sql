-- Checks the floor from which a new process looks for due messages. Consumers store it every ten seconds if it helps.
select 'advice', f.queue,
       format('the stored floor of the queue is %s behind its oldest message', date_trunc('second', o.due_at - f.reached)), f.reached,
       'A new process scans all rows that died since then. Consumers store the floor, except roles that were granted their rights by hand and transactions that are not read committed.',
       format('select trunkline.keep_floor(%L, %L);', f.queue, least(o.due_at, now()) - interval '1 minute')
from trunkline.floor f, lateral ({oldest}) o (due_at), pg_stat_user_tables s
where f.queue = {name} and s.schemaname = 'trunkline' and s.relname = 'queue_' || f.queue
  and s.n_dead_tup > 50000 and isfinite(f.reached) and f.reached < o.due_at - interval '1 hour'
