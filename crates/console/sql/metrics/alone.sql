-- Applies to the next look's transaction alone. It uses one core at most, so that the time it takes is its cost; it has a time limit; and it does not wait for
-- a queue that a session has locked against readers. The path is set first, so that no name of another schema is found.
select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), pg_catalog.set_config('max_parallel_workers_per_gather', '0', true), pg_catalog.set_config('jit', 'off', true),
       pg_catalog.set_config('lock_timeout', '100ms', true), pg_catalog.set_config('statement_timeout', $1, true)
