-- As enqueue, for queues with keys.
insert into trunkline.{queue_} (due_at, size, payload, metadata, lane, keys) values (case when $1::float8 >= 0 then trunkline.clock() + $1::float8 * interval '1 second' else greatest(trunkline.clock(), to_timestamp(-$1::float8)) end, $2, $3, $4, $5, $6) returning id
