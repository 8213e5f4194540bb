create or replace function trunkline.resume_schedule(name text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Resumes a paused schedule from its next tick on. Ticks during the pause do not count as missed.
--
-- Example:
--     select trunkline.resume_schedule('reminders');
#variable_conflict use_variable
begin
    update trunkline.schedule s
    set paused = false, placed = s.placed and not s.paused, owed_at = case when not s.paused then s.owed_at end, next_at = case when s.paused then clock_timestamp() else s.next_at end
    where s.name = name;
    perform trunkline.found_schedule(name, found);
    perform pg_notify('trunkline._schedules', '');
end $$;
