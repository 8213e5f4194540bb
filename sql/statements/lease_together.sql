-- Like lease, for workers that do not isolate: messages whose lease expired are leased with others.
select id, attempt, size, enqueued_at, payload, metadata, ran_out, released
from trunkline.{do_lease_}($1, $2 operator(pg_catalog.*) interval '1 second', $3, operator(pg_catalog.-) $4::pg_catalog.int4)
