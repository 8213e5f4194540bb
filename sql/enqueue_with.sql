-- As enqueue, for rows of which some message has metadata; apart, because most have none and should not pay for the column.
insert into trunkline.{queue_} (due_at, size, payload, metadata) values (case when $1::float8 >= 0 then trunkline.clock() + $1::float8 * interval '1 second' else greatest(trunkline.clock(), to_timestamp(-$1::float8)) end, $2, $3, $4) returning id
