create or replace function trunkline.prune_keys(queue text) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Deletes all unique keys that expired more than a minute ago; returns how many. Programs that use the library remove
-- such keys while they enqueue. If all messages are enqueued with SQL alone, call this function from time to time.
-- Skips keys that another transaction has locked.
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
