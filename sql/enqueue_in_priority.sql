-- As enqueue_in, for queues with priorities.
select * from trunkline.{do_batch_}(
    $1, greatest($2::float8, 0) * interval '1 second', $3, case when $2::float8 < 0 then to_timestamp(-$2::float8) end, $4)
