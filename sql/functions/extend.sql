create or replace function trunkline.extend(queue text, id bigint, attempt int, lease interval) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Sets the lease of a message to end after this duration, counted from now. Fails with TL001 if the message is no
-- longer leased.
--
-- Example:
--     select trunkline.extend('emails', id, attempt, '10 minutes') from trunkline.lease('emails');
begin
    perform trunkline.check_lease(lease);
    perform trunkline.settle('extend', queue, array[id], array[attempt], lease);
end $$;
