-- Moves due_at to the end of the lease; nothing else marks a message as leased. Payloads are not rewritten. A message whose lease expired is
-- leased alone, because it may have crashed its consumer. The minus is explained in take.sql.
select id, attempt, size, enqueued_at, payload, metadata, ran_out, released
from trunkline.{do_lease_}($1, $2 operator(pg_catalog.*) interval '1 second', $3, operator(pg_catalog.-) $4::pg_catalog.int4, true)
