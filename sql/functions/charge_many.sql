create or replace function trunkline.charge_many(queue text, ids bigint[], attempts int[], delay interval default '0', error text default '') returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Like trunkline.charge, for many messages at once: pass one attempt for each id. Fails with TL001, and changes
-- nothing, if another consumer has leased one of the messages since, or one is gone.
--
-- Example:
--     select trunkline.charge_many('emails', array_agg(id), array_agg(attempt), error => 'no such host')
--     from (select id, attempt from trunkline.messages('emails') where due_at <= now() limit 2) failed;
begin
    perform trunkline.check_delay(delay);
    perform trunkline.settle('charge', queue, ids, attempts, delay, error);
    perform pg_notify('trunkline.' || queue, '') where trunkline.announced('trunkline.' || queue);
end $$;
