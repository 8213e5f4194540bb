create or replace function trunkline.repair_times(queue text) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Puts right what a clock that was ahead has written into a queue: messages that wait for a time that they do not mean, leases, lanes, unique keys, limits. Consumers
-- do so by themselves, for what they can tell to be wrong; this ends leases, too, that last for longer than the queue's, as those of workers that
-- were killed before the clock was set back. A worker that lives renews its own. Returns how many messages it changed. The doctor says when this is needed.
--
-- Example:
--     select trunkline.repair_times('emails');
declare
    messages bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('select trunkline.%I(2, (select greatest(f.reached, f.shown) - clock_timestamp() from trunkline.floor f
                                           where f.queue = $1 and greatest(f.reached, f.shown) > clock_timestamp()))', 'do_right_' || queue)
        into messages using queue;
    update trunkline.floor f set reached = case when f.reached <= clock_timestamp() then f.reached else '-infinity' end, shown = clock_timestamp()
    where f.queue = repair_times.queue and greatest(f.reached, f.shown) > clock_timestamp();
    if has_table_privilege('trunkline.schedule', 'update') then
        perform trunkline.right_schedules();
    end if;
    return messages;
end $$;
