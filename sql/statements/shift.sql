-- Simulates, for tests, that this number of seconds has passed for the queue.
select trunkline.{do_shift_}($1::pg_catalog.float8 operator(pg_catalog.*) interval '1 second')
