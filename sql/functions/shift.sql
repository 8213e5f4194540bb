create or replace function trunkline.shift(queue text, passed interval) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Simulates the passage of time for one queue, for use in tests. Messages that are due within this time are
-- due now, in the order in which they would have become due; messages that are due later become due sooner by this
-- much. Leases, retries and delays are due times, so a lease that would end within this time has expired. All past
-- events (enqueued, died, archived) move back by the same time. Waiting consumers are woken at the commit. The next
-- ticks of the queue's schedules also come sooner by this much. Returns how many messages are in the queue.
--
-- passed: at least zero and at most 36500 days. Waits for transactions that have locked messages of the queue.
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
