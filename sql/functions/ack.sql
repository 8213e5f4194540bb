create or replace function trunkline.ack(queue text, id bigint, attempt int) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Acknowledges a message, which deletes it. Fails with TL001 if the message is no longer leased.
--
-- Example:
--     select trunkline.ack('emails', id, attempt) from trunkline.lease('emails');
begin
    perform trunkline.settle('ack', queue, array[id], array[attempt]);
end $$;
