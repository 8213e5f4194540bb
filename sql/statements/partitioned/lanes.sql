-- Leases from partitions for a holder (a worker). Like lease, with the key of each message and the rate of keys.
-- -1 asks for a last row without an id, like the minus in take.sql.
select id, attempt, size, enqueued_at, payload, metadata, ran_out, released, keys, rate
from trunkline.{do_lanes_}($1, $2 operator(pg_catalog.*) interval '1 second', $3, $4, -1)
