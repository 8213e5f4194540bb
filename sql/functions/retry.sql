create or replace function trunkline.retry(queue text, id bigint, attempt int, delay interval default '0', error text default '') returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Gives a message back after a failure: it is due again after the delay, or becomes a dead letter if this was its last
-- attempt. Fails with TL001 if the message is no longer leased. If the error is longer than 16,384 characters, only its
-- first and last 8,000 are kept.
--
-- Example:
--     select trunkline.retry('emails', id, attempt, delay => '5 minutes', error => 'no such host') from trunkline.lease('emails');
begin
    perform trunkline.check_delay(delay);
    perform trunkline.settle('retry', queue, array[id], array[attempt], delay, error);
    perform pg_notify('trunkline.' || queue, '') where trunkline.announced('trunkline.' || queue);
end $$;
