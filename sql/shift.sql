-- For tests: as if so many seconds had passed for the queue.
select trunkline.{do_shift_}($1::float8 * interval '1 second')
