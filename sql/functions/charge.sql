create or replace function trunkline.charge(queue text, id bigint, attempt int, delay interval default '0', error text default '') returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- After a rollback, charges an attempt for a message that was taken in it: due again after the delay, or a dead letter after its last attempt,
-- so that a message which always fails cannot hold up an exactly-once consumer. attempt is what trunkline.take returned. Errs with TL001 where
-- another consumer has it.
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
    perform pg_notify('trunkline.' || queue, '');
end $$;
