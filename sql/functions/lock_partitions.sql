create or replace function trunkline.lock_partitions(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '10s' as $$
-- Locks the tables of a queue with keys against all other sessions, for trunkline.more_lanes and trunkline.rebuild, in
-- the order in which leases lock them. Leases that have already begun are finished when the locks are granted.
begin
    execute format('lock table trunkline.%I, trunkline.%I, trunkline.%I in access exclusive mode', 'lane_' || queue, 'queue_' || queue, 'line_' || queue);
exception when lock_not_available then
    perform trunkline.raise_in_use(queue, 'ten seconds');
end $$;
