-- Due that long from now by the server's clock. What is busy is not done.
select id, done from trunkline.{do_reschedule_}($1, clock_timestamp() + $2 * interval '1 second')
