create or replace function trunkline.charge(queue text, id bigint, attempt int, delay interval default '0', error text default '') returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Counts an attempt after a rollback, for a message that the rolled-back transaction had taken. The message is due
-- again after the delay; after its last attempt it becomes a dead letter. So a message that always fails cannot hold up
-- an exactly-once consumer. Fails with TL001 if another consumer has leased the message since,
-- or the message is gone.
--
-- attempt: the number that trunkline.take returned.
--
-- Example:
--     begin;
--     select id, attempt from trunkline.take('emails');
--     rollback;
--     select trunkline.charge('emails', id, attempt, delay => '1 minute', error => 'no such host')
--     from trunkline.messages('emails') where due_at <= now() limit 1;
begin
    perform trunkline.check_delay(delay);
    perform trunkline.settle('charge', queue, array[id], array[attempt], delay, error);
    perform pg_notify('trunkline.' || queue, '') where trunkline.announced('trunkline.' || queue);
end $$;
