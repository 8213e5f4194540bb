-- Applies to a transaction's statements alone: their names are the catalog's, they do not wait for a table that is locked against readers, and they have a
-- time limit.
select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), pg_catalog.set_config('lock_timeout', '100ms', true),
       pg_catalog.set_config('statement_timeout', $1, true)
