-- Returns whether this role may read the workers' reports, read the schedules, and keep the history. Without this query, refused attempts would fill
-- the server's log. Also returns whether the server is a standby, which cannot read an unlogged table or write anything.
select pg_catalog.has_table_privilege('trunkline.worker', 'select'), pg_catalog.has_table_privilege('trunkline.schedule', 'select'),
       pg_catalog.has_table_privilege('trunkline.history', 'select') and pg_catalog.has_table_privilege('trunkline.history', 'insert')
       and pg_catalog.has_table_privilege('trunkline.history', 'delete'),
       pg_catalog.pg_is_in_recovery()
