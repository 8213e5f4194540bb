-- Sets, for the transaction of a look, at most one core, so that the duration of the look is its cost. It also sets timeouts: if a session has locked
-- one queue against readers, the other queues do not wait for that. The path comes first: from then on, no name of another schema is found.
select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), pg_catalog.set_config('max_parallel_workers_per_gather', '0', true), pg_catalog.set_config('jit', 'off', true),
       pg_catalog.set_config('lock_timeout', '100ms', true), pg_catalog.set_config('statement_timeout', $1, true)
