-- On the caller's connection: cuts into batches there, and the notification goes out with the caller's commit.
select * from trunkline.{do_batch_}(
    $1, case when $2::float8 >= 0 then $2::float8 * interval '1 second' else greatest(to_timestamp(-$2::float8) - clock_timestamp(), interval '0') end, $3)
