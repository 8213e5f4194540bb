-- Sent before a statement, under the same Sync and so in its transaction. Local to that: a user's next statement on the connection has the user's path.
select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)
