-- Whether this role may read what workers report, and the schedules, and keep the history: to try and be refused, again and again, would fill the server's log.
-- Whether this is a standby, where an unlogged table cannot be read, and nothing be written.
select pg_catalog.has_table_privilege('trunkline.worker', 'select'), pg_catalog.has_table_privilege('trunkline.schedule', 'select'),
       pg_catalog.has_table_privilege('trunkline.history', 'select') and pg_catalog.has_table_privilege('trunkline.history', 'insert')
       and pg_catalog.has_table_privilege('trunkline.history', 'delete'),
       pg_catalog.pg_is_in_recovery()
