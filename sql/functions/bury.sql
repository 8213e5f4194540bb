create or replace function trunkline.bury(queue text, id bigint, attempt int, reason text default '') returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Makes a message a dead letter at once, however many attempts are left. Errs with TL001 where it is not leased any more. Of a reason of more than 16,384 characters, the first and the last 8,000 are kept.
--
-- Example:
--     select trunkline.bury('emails', id, attempt, 'no such address') from trunkline.lease('emails');
begin
    perform trunkline.settle('bury', queue, array[id], array[attempt], null, reason);
end $$;
