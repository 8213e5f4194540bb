-- Sent before a statement, under the same Sync and so in the same transaction. The setting is local
-- to that transaction, so the user's next statement on the connection has the user's path.
select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)
