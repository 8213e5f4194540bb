create or replace function trunkline.payload_type(queue text) returns regtype
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Returns the type of a queue's payloads. The type is read from the table's definition, because it is stored nowhere
-- else.
--
-- Example:
--     select trunkline.payload_type('emails');
begin
    return (select a.atttypid from pg_attribute a
            where a.attrelid = to_regclass(format('trunkline.%I', 'dead_' || queue)) and a.attname = 'payload');
end $$;
