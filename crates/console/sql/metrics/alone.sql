-- Said before a look, for its transaction alone: one core at most, so that the time it took is what it cost; not without end; and where a session has locked the
-- queue against readers, the other queues do not wait for that. The path comes first: no name of another schema is found then.
select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), pg_catalog.set_config('max_parallel_workers_per_gather', '0', true), pg_catalog.set_config('jit', 'off', true),
       pg_catalog.set_config('lock_timeout', '100ms', true), pg_catalog.set_config('statement_timeout', $1, true)
