create or replace function trunkline.pause_schedule(name text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Pauses a schedule: it makes no ticks until trunkline.resume_schedule is called. Pausing a paused schedule changes
-- nothing.
--
-- Example:
--     select trunkline.pause_schedule('reminders');
#variable_conflict use_variable
begin
    update trunkline.schedule s set paused = true where s.name = name;
    perform trunkline.found_schedule(name, found);
end $$;
