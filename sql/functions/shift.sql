create or replace function trunkline.shift(queue text, passed interval) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- For the tests of programs: lets time pass for one queue. What is due within that time is due now, in the order in which it
-- would have been; what is due later is due that much sooner. Leases, retries and delays are due times, so a lease that would
-- end within that time has run out. Whatever happened (enqueued, died, archived) happened that much longer ago. Consumers that
-- wait are woken at the commit. The next ticks of the queue's schedules are sooner by as much, too. Returns how many messages the queue holds.
--
-- passed: at least zero and at most 36500 days. Waits for transactions that have messages of the queue in their hands.
--
-- Example:
--     select trunkline.shift('emails', '1 hour');
declare
    messages bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('select trunkline.%I($1)', 'do_shift_' || queue) into messages using passed;
    perform pg_notify('trunkline.' || queue, '');
    if has_table_privilege('trunkline.schedule', 'update') then
        update trunkline.schedule s set next_at = s.next_at - passed, owed_at = s.owed_at - passed where s.queue = shift.queue and s.placed;
        perform pg_notify('trunkline._schedules', '') where found;
    end if;
    return messages;
end $$;
