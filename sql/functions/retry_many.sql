create or replace function trunkline.retry_many(queue text, ids bigint[], attempts int[], delay interval default '0', error text default '') returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Like trunkline.retry, for many messages at once: pass one attempt for each id. Fails with TL001, and changes nothing,
-- if any of the messages is no longer leased.
--
-- Example:
--     select trunkline.retry_many('emails', array_agg(id), array_agg(attempt), delay => '5 minutes', error => 'no such host')
--     from trunkline.lease('emails', 2);
begin
    perform trunkline.check_delay(delay);
    perform trunkline.settle('retry', queue, ids, attempts, delay, error);
    perform pg_notify('trunkline.' || queue, '') where trunkline.announced('trunkline.' || queue);
end $$;
