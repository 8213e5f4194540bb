create or replace function trunkline.fire_schedule(name text) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Enqueues the message of a schedule now, even if the schedule is paused, and returns the message's id. The time of the
-- next tick does not change. Runs in the caller's transaction, like trunkline.enqueue, but waits at most a second if
-- another session has locked the queue (55P03).
--
-- Example:
--     select trunkline.fire_schedule('reminders');
#variable_conflict use_variable
declare
    place tid;
    id bigint;
begin
    select s.ctid into place from trunkline.schedule s where s.name = name for update;
    perform trunkline.found_schedule(name, found);
    select t.id into id from trunkline.tick(array[place], array[clock_timestamp()]) t(id);
    return id;
end $$;
