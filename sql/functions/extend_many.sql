create or replace function trunkline.extend_many(queue text, ids bigint[], attempts int[], lease interval) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- As trunkline.extend, for many messages at once: an attempt for each id. Those that are still leased are settled only if all are.
--
-- Example:
--     select trunkline.extend_many('emails', array_agg(id), array_agg(attempt), '10 minutes')
--     from trunkline.lease('emails', 2);
begin
    perform trunkline.check_lease(lease);
    perform trunkline.settle('extend', queue, ids, attempts, lease);
end $$;
