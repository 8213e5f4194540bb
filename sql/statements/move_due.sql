-- Keeps delays and pending retries. A due time is never before the time at which the transaction
-- added the row: the floor relies on that. Comparing with that time keeps the order of the rows.
update trunkline.{queue_} q set due_at = d.due_at
from rows from (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::pg_catalog.timestamptz[])) d(id, due_at)
where q.id operator(pg_catalog.=) d.id and d.due_at operator(pg_catalog.>) q.due_at
