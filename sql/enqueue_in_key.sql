-- As enqueue_in, for queues with keys.
select * from trunkline.{do_keyed_}(
    $1, $4, greatest($2::float8, 0) * interval '1 second', $3, case when $2::float8 < 0 then to_timestamp(-$2::float8) end)
