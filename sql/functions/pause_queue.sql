create or replace function trunkline.pause_queue(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Pauses a queue: from the commit on nothing is taken or leased from it. Enqueues go on, and so does what is leased. One that is paused
-- stays so.
--
-- Example:
--     select trunkline.pause_queue('emails');
begin
    perform trunkline.set_paused(queue, true);
end $$;
