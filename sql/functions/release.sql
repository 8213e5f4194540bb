create or replace function trunkline.release(queue text, id bigint, attempt int) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Gives a message back: it is due again immediately, and the attempt is not counted. Fails with TL001 if the message is
-- no longer leased.
--
-- Example:
--     select trunkline.release('emails', id, attempt) from trunkline.lease('emails');
begin
    perform trunkline.settle('release', queue, array[id], array[attempt]);
    perform pg_notify('trunkline.' || queue, '') where trunkline.announced('trunkline.' || queue);
end $$;
