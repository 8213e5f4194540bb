create or replace function trunkline.set_paused(queue text, paused bool) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Pauses or resumes a queue. Creates the queue's functions again, so that a queue that is not
-- paused pays nothing for the check.
#variable_conflict use_variable
begin
    perform trunkline.lock_queue(queue);
    perform trunkline.check_queue(queue);
    update trunkline.queue q set paused = paused, paused_at = case when paused then clock_timestamp() end where q.name = queue and q.paused <> paused;
    if found then
        perform trunkline.install_functions(queue);
        perform pg_notify('trunkline.' || queue, '');
    end if;
end $$;
