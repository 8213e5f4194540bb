create or replace function trunkline.ack_many(queue text, ids bigint[], attempts int[]) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- As trunkline.ack, for many messages at once: an attempt for each id. Those that are still leased are settled only if all are.
--
-- Example:
--     select trunkline.ack_many('emails', array_agg(id), array_agg(attempt))
--     from trunkline.lease('emails', 2);
begin
    perform trunkline.settle('ack', queue, ids, attempts);
end $$;
