create or replace function trunkline.repair_times(queue text) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp set row_security = on as $$
-- Repairs times that were written to a queue while a clock was ahead: messages that wait for a wrong time, leases,
-- partitions, unique keys and limits. Consumers repair by themselves what they can recognize as wrong. This function also
-- shortens leases that last longer than the queue's setting to that setting, such as leases of workers that were killed
-- before the clock was set back. A worker that is alive renews its own leases. Returns how many messages changed. The doctor reports
-- when this is needed.
--
-- Example:
--     select trunkline.repair_times('emails');
declare
    kept timestamptz;
    messages bigint;
begin
    perform trunkline.check_queue(queue);
    -- Only the session that locks this row subtracts how far the clock was ahead.
    select greatest(f.reached, f.shown) into kept from trunkline.floor f
    where f.queue = repair_times.queue and greatest(f.reached, f.shown) > clock_timestamp() for update;
    execute format('select trunkline.%I(2, $1)', 'do_right_' || queue) into messages using kept - clock_timestamp();
    update trunkline.floor f set reached = case when f.reached <= clock_timestamp() then f.reached else '-infinity' end, shown = clock_timestamp()
    where f.queue = repair_times.queue and greatest(f.reached, f.shown) > clock_timestamp();
    if has_table_privilege('trunkline.schedule', 'update') then
        perform trunkline.right_schedules();
    end if;
    return messages;
end $$;
