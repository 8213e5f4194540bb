create or replace function trunkline.drop_schedule(name text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Drops a schedule. Messages that it has enqueued stay. Dropping a queue also drops the queue's schedules.
--
-- Example:
--     select trunkline.set_schedule('obsolete', 'emails', '@daily', '{}');
--     select trunkline.drop_schedule('obsolete');
#variable_conflict use_variable
begin
    delete from trunkline.schedule s where s.name = name;
    perform trunkline.found_schedule(name, found);
end $$;
