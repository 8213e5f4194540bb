-- Returns the version of the schema, how full the server's notification queue is, and how many sessions hide from this role whether they hold the horizon
-- back. Hidden sessions must not look like a healthy database.
select (select max(v.version) from trunkline.version v), pg_notification_queue_usage(),
       (select count(*) from pg_stat_activity a where a.datname = current_database() and a.backend_type is null)
