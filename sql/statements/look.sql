-- One snapshot shows both the oldest row and the transactions that could still commit an older one. Also returns whether
-- the queue limits its leases, because that may have changed.
select oldest, candidate, due_in, running, next, cost,
       exists (select from trunkline.queue q where q.name operator(pg_catalog.=) $2 and q.max_leased is not null)
from trunkline.{do_look_}($1)
