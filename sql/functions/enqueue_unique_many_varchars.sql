create or replace function trunkline.enqueue_unique_many(queue text, payloads varchar[], unique_keys text[], unique_for interval default null,
        replace bool default false, delay interval default '0', metadata jsonb[] default null, priority int default 0)
    returns table (id bigint, outcome text)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- With payloads varchar[]: as with text[]. Cast arrays of other types of texts, such as name, char and citext, and of
-- domains over texts, to text[].
--
-- Example:
--     select id, outcome from trunkline.enqueue_unique_many('reports', array['{"of": "acme"}', '{"of": "umbrella"}']::varchar[], array['acme', 'umbrella']);
begin
    return query select u.id, u.outcome from trunkline.enqueue_unique_many(queue, payloads::text[], unique_keys, unique_for, replace, delay, metadata, priority) u;
end $$;
