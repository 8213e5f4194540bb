create or replace function trunkline.extend(queue text, id bigint, attempt int, lease interval) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Makes the lease of a message end that long from now. Errs with TL001 where it is not leased any more.
--
-- Example:
--     select trunkline.extend('emails', id, attempt, '10 minutes') from trunkline.lease('emails');
begin
    perform trunkline.check_lease(lease);
    perform trunkline.settle('extend', queue, array[id], array[attempt], lease);
end $$;
