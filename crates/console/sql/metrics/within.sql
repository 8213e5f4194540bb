-- Sets, for one transaction, that names are found only in the catalog, that statements do not wait for a table that is locked against readers, and
-- that they end after a time limit.
select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), pg_catalog.set_config('lock_timeout', '100ms', true),
       pg_catalog.set_config('statement_timeout', $1, true)
