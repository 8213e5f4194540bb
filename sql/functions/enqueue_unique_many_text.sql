create or replace function trunkline.enqueue_unique_many(queue text, payloads text, unique_keys text[], unique_for interval default null,
        replace bool default false, delay interval default '0', metadata jsonb[] default null, priority int default 0)
    returns table (id bigint, outcome text)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- With payloads text: an array of texts that is itself written as text. Drivers pass a list this way if they leave its
-- type to the server.
--
-- Example:
--     select id, outcome from trunkline.enqueue_unique_many('reports', '{"{\"of\": \"acme\"}", "{\"of\": \"hooli\"}"}', '{acme, hooli}');
begin
    return query select u.id, u.outcome from trunkline.enqueue_unique_many(queue, payloads::text[], unique_keys, unique_for, replace, delay, metadata, priority) u;
end $$;
