-- Sets, for one transaction, that names are found only in the catalog.
select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)
