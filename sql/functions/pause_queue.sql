create or replace function trunkline.pause_queue(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Pauses a queue: after the commit, nothing is taken or leased from it. Enqueues continue, and so does work on leased
-- messages. Pausing a paused queue changes nothing.
--
-- Example:
--     select trunkline.pause_queue('emails');
begin
    perform trunkline.set_paused(queue, true);
end $$;
