create or replace function trunkline.bury_many(queue text, ids bigint[], attempts int[], reason text default '') returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Like trunkline.bury, for many messages at once: pass one attempt for each id. Fails with TL001, and changes nothing,
-- if any of the messages is no longer leased.
--
-- Example:
--     select trunkline.bury_many('emails', array_agg(id), array_agg(attempt), 'no such address')
--     from trunkline.lease('emails', 2);
begin
    perform trunkline.settle('bury', queue, ids, attempts, null, reason);
end $$;
