-- Returns the version of the schema, how full the server's notification queue is, and the number of sessions that this role cannot see:
-- they may hold back the horizon.
select (select max(v.version) from trunkline.version v), pg_notification_queue_usage(),
       (select count(*) from pg_stat_activity a where a.datname = current_database() and a.backend_type is null)
