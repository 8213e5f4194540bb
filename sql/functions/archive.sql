create or replace function trunkline.archive(queue text, id bigint, attempt int) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Acknowledges a message and moves it to the queue's archive. Fails with TL001 if the message is no longer leased.
--
-- Example:
--     select trunkline.archive('emails', id, attempt) from trunkline.lease('emails');
begin
    perform trunkline.settle('archive', queue, array[id], array[attempt]);
end $$;
