create or replace function trunkline.bury(queue text, id bigint, attempt int, reason text default '') returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Makes a message a dead letter immediately, no matter how many attempts are left. Fails with TL001 if the message is
-- no longer leased. If the reason is longer than 16,384 characters, only its first and last 8,000 are kept.
--
-- Example:
--     select trunkline.bury('emails', id, attempt, 'no such address') from trunkline.lease('emails');
begin
    perform trunkline.settle('bury', queue, array[id], array[attempt], null, reason);
end $$;
