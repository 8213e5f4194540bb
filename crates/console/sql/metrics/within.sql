-- Sets, for one transaction: names are found in the catalog only, statements do not wait for a table that is locked against readers, and they end
-- after a time.
select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), pg_catalog.set_config('lock_timeout', '100ms', true),
       pg_catalog.set_config('statement_timeout', $1, true)
