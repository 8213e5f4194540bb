create or replace function trunkline.extend_many(queue text, ids bigint[], attempts int[], lease interval) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Like trunkline.extend, for many messages at once: pass one attempt for each id. Fails with TL001, and changes
-- nothing, if any of the messages is no longer leased.
--
-- Example:
--     select trunkline.extend_many('emails', array_agg(id), array_agg(attempt), '10 minutes')
--     from trunkline.lease('emails', 2);
begin
    perform trunkline.check_lease(lease);
    perform trunkline.settle('extend', queue, ids, attempts, lease);
end $$;
