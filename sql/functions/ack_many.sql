create or replace function trunkline.ack_many(queue text, ids bigint[], attempts int[]) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Like trunkline.ack, for many messages at once: pass one attempt for each id. Fails with TL001, and changes nothing,
-- if any of the messages is no longer leased.
--
-- Example:
--     select trunkline.ack_many('emails', array_agg(id), array_agg(attempt))
--     from trunkline.lease('emails', 2);
begin
    perform trunkline.settle('ack', queue, ids, attempts);
end $$;
