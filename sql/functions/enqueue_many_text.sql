create or replace function trunkline.enqueue_many(queue text, payloads text, delay interval default '0', metadata jsonb[] default null,
        priority int default 0, unique_keys text[] default null, unique_for interval default null, replace bool default false,
        keys text[] default null)
    returns setof bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- With payloads text: an array of texts that is itself written as text. Drivers pass a list this way if they leave its
-- type to the server.
--
-- Example:
--     select * from trunkline.enqueue_many('emails', '{"{\"to\": \"eve@example.org\"}", "{\"to\": \"dan@example.org\"}"}');
begin
    return query select * from trunkline.enqueue_many(queue, payloads::text[], delay, metadata, priority, unique_keys, unique_for, replace, keys);
end $$;
