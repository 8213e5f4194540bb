-- On the caller's connection: cuts into batches there, and the notification goes out with the caller's commit.
select * from trunkline.{do_batch_}($1, $2 * interval '1 second', $3)
