-- Returns whether this role may read the workers' reports and the schedules, and write the history. Repeated refused attempts would fill the server's log.
-- Also returns whether this is a standby, where unlogged tables cannot be read and nothing can be written.
select pg_catalog.has_table_privilege('trunkline.worker', 'select'), pg_catalog.has_table_privilege('trunkline.schedule', 'select'),
       pg_catalog.has_table_privilege('trunkline.history', 'select') and pg_catalog.has_table_privilege('trunkline.history', 'insert')
       and pg_catalog.has_table_privilege('trunkline.history', 'delete'),
       pg_catalog.pg_is_in_recovery()
