-- On the caller's connection: cuts into batches there, and the notification goes out with the caller's commit.
select * from trunkline.{do_batch_}(
    $1, greatest($2::float8, 0) * interval '1 second', $3, case when $2::float8 < 0 then to_timestamp(-$2::float8) end)
