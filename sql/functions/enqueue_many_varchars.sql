create or replace function trunkline.enqueue_many(queue text, payloads varchar[], delay interval default '0', metadata jsonb[] default null,
        priority int default 0, unique_keys text[] default null, unique_for interval default null, replace bool default false,
        keys text[] default null)
    returns setof bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- With payloads varchar[]: as with text[]. Cast arrays of other types of texts, such as name, char and citext, and of
-- domains over texts, to text[].
--
-- Example:
--     select * from trunkline.enqueue_many('emails', array['{"to": "ivy@example.org"}', '{"to": "joe@example.org"}']::varchar[]);
begin
    return query select * from trunkline.enqueue_many(queue, payloads::text[], delay, metadata, priority, unique_keys, unique_for, replace, keys);
end $$;
