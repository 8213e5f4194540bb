-- Like enqueue_in, for queues with priorities.
select * from trunkline.{do_batch_}(
    $1, greatest($2::pg_catalog.float8, 0) operator(pg_catalog.*) interval '1 second', $3, case when $2::pg_catalog.float8 operator(pg_catalog.<) 0 then trunkline.due_from($2) end, $4)
