create or replace function trunkline.bury_many(queue text, ids bigint[], attempts int[], reason text default '') returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- As trunkline.bury, for many messages at once: an attempt for each id. Those that are still leased are settled only if all are.
--
-- Example:
--     select trunkline.bury_many('emails', array_agg(id), array_agg(attempt), 'no such address')
--     from trunkline.lease('emails', 2);
begin
    perform trunkline.settle('bury', queue, ids, attempts, null, reason);
end $$;
