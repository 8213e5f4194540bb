create or replace function trunkline.resume_queue(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Resumes a paused queue and wakes its consumers.
--
-- Example:
--     select trunkline.resume_queue('emails');
begin
    perform trunkline.set_paused(queue, false);
end $$;
