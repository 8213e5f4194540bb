create or replace function trunkline.unlisten(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set client_min_messages = error as $$
-- Undoes trunkline.listen, no matter how often it was called for this queue. Does nothing if it was
-- not called. Producers may stop notifying immediately, not at the commit. If the transaction is
-- rolled back, the session still listens, but is no longer announced: call trunkline.listen again.
--
-- Example:
--     select trunkline.unlisten('emails');
declare
    channel text := 'trunkline.' || queue;
begin
    if queue is null or not queue = any (string_to_array(coalesce(current_setting('trunkline.listens', true), ''), ',')) then
        perform trunkline.check_queue(queue); -- but a queue that this session listened to may have been dropped
    end if;
    execute format('unlisten %I', channel);
    perform set_config('trunkline.listens',
        array_to_string(array_remove(string_to_array(current_setting('trunkline.listens', true), ','), queue), ','), false);
    -- The last call warns that no lock is held; client_min_messages hides the warning.
    while pg_advisory_unlock_shared(1953656427, hashtext(channel)) loop
    end loop;
end $$;
