-- Limits the transaction of a sample to one core, so that the sample's duration is its cost. Also sets timeouts: if a session has locked one queue
-- against readers, the other queues do not wait. The search path is set first, so that no name of another schema is found from then on.
select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), pg_catalog.set_config('max_parallel_workers_per_gather', '0', true), pg_catalog.set_config('jit', 'off', true),
       pg_catalog.set_config('lock_timeout', '100ms', true), pg_catalog.set_config('statement_timeout', $1, true)
