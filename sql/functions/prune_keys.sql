create or replace function trunkline.prune_keys(queue text) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Deletes unique keys whose time has passed for more than a minute, all at once; returns how many. Programs that use the library clear them away beside what they
-- enqueue; where all enqueue by SQL alone, call it now and then. Passes over what another transaction has locked.
--
-- Example:
--     select trunkline.prune_keys('reports');
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    perform trunkline.check_unique(queue, 0, null, '{}', null);
    execute format('select trunkline.%I(null)', 'do_forget_' || queue) into count;
    return count;
end $$;
