-- Returns the version of the schema, how full the server's notification queue is, and how many sessions this role cannot see: such sessions may hold
-- the horizon back, and must not look like health.
select (select max(v.version) from trunkline.version v), pg_notification_queue_usage(),
       (select count(*) from pg_stat_activity a where a.datname = current_database() and a.backend_type is null)
