-- Whether this role may read what workers report, and the schedules: to try and be refused, again and again, would fill the server's log.
select has_table_privilege('trunkline.worker', 'select'), has_table_privilege('trunkline.schedule', 'select')
