-- Changes the settings of a queue; null leaves one as it is. What is leased keeps its lease.
--
-- Example:
--     select trunkline.alter_queue('emails', max_batch => 100);
create or replace function trunkline.alter_queue(
    queue text, max_attempts int default null, lease interval default null, max_batch int default null
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
    now_is trunkline.queue;
begin
    perform trunkline.lock_queue(queue);
    perform trunkline.check_queue(queue);
    select * into now_is from trunkline.queue q where q.name = queue for update;
    max_attempts := coalesce(max_attempts, now_is.max_attempts);
    lease := coalesce(lease, now_is.lease);
    max_batch := coalesce(max_batch, now_is.max_batch);
    perform trunkline.check_settings(queue, max_attempts, lease, max_batch);
    update trunkline.queue q set max_attempts = max_attempts, lease = lease, max_batch = max_batch where q.name = queue;
    perform trunkline.install_queue(queue);
end $$;
