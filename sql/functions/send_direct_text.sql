create or replace function trunkline.send_direct(queue text, payload text, metadata jsonb default null) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Like the variant for a value of the queue's type, but takes the payload as text; see trunkline.enqueue.
--
-- Example:
--     select trunkline.send_direct('emails', '{"to": "bob@example.org"}', metadata => '{"tenant": "acme"}');
begin
    return trunkline.send_direct_one(queue, payload, metadata);
end $$;
