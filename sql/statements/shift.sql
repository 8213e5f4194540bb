-- Simulates, for tests, that this number of seconds has passed for the queue.
select trunkline.shift($1, $2::pg_catalog.float8 operator(pg_catalog.*) interval '1 second')
