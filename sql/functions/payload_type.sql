create or replace function trunkline.payload_type(queue text) returns regtype
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Returns the type of a queue's payloads, or null if the type was dropped. The type is read from the table's definition,
-- because it is stored nowhere else.
--
-- Example:
--     select trunkline.payload_type('emails');
declare
    type regtype := (select a.atttypid from pg_attribute a
                     where a.attrelid = to_regclass(format('trunkline.%I', 'dead_' || coalesce(queue, ''))) and a.attname = 'payload');
begin
    if type is null then
        perform trunkline.check_queue(queue);
    end if;
    return type;
end $$;
