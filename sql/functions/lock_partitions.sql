create or replace function trunkline.lock_partitions(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '10s' as $$
-- Locks the tables of a queue with keys against all other sessions, for trunkline.more_lanes, trunkline.rebuild and
-- trunkline.alter_queue, in the order in which leases lock them. Leases that have already begun are finished when the
-- locks are granted. A user's transaction may have locked the tables in another order, for example because it enqueued
-- before it leased. So a wait that could be part of a deadlock ends before Postgres looks for one; all locks are
-- released, and the other transaction goes on.
declare
    patient constant timestamptz := clock_timestamp() + interval '3 s';
    is_last bool;
begin
    loop
        -- If transactions overlap all the time, only a longer wait gets the locks.
        is_last := clock_timestamp() >= patient;
        perform set_config('lock_timeout', case when is_last then '7s' else
            greatest(least(extract(epoch from current_setting('deadlock_timeout')::interval) * 500, 2000), 1)::int || 'ms' end, true);
        begin
            execute format('lock table trunkline.%I, trunkline.%I, trunkline.%I in access exclusive mode', 'lane_' || queue, 'queue_' || queue, 'line_' || queue);
            return;
        exception when lock_not_available then
            if is_last then
                perform trunkline.raise_in_use(queue, 'ten seconds');
            end if;
        end;
    end loop;
end $$;
