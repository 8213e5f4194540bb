create or replace function trunkline.shift(queue text, passed interval) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp set row_security = on as $$
-- Simulates the passage of time for one queue, for use in tests. Messages that are due within this time are
-- due now, in the order in which they would have become due; messages that are due later become due sooner by this
-- much. Leases, retries and delays are due times, so a lease that would end within this time has expired. All past
-- events (enqueued, died, archived) move back by the same time. Waiting consumers are woken at the commit. The next
-- ticks of the queue's schedules also come sooner by this much, and the queue's rate refills by it. Returns how many
-- messages are in the queue. Waits for transactions that have locked messages of the queue.
--
-- passed: at least zero and at most 36500 days.
--
-- Example:
--     select trunkline.shift('emails', '1 hour');
declare
    clock timestamptz;
    settings record;
    messages bigint;
begin
    perform trunkline.check_queue(queue);
    if passed is null or passed < '0' or passed > '36500 days' then
        raise exception 'a time of % is out of bounds', coalesce(passed::text, 'null') using errcode = 'invalid_parameter_value',
            hint = 'Pass a time between zero and 36500 days.';
    end if;
    clock := trunkline.clock();
    select q.lanes > 0 as keyed, q.uniqueness into settings from trunkline.queue q where q.name = queue;
    if settings.keyed then
        -- Locks all partitions. Otherwise a worker could lease from a partition, skip the rows that are locked here,
        -- and receive the messages behind them first.
        execute format('select from trunkline.%I h where h.lane < 0 order by h.lane for update', 'lane_' || queue);
    end if;
    -- Messages that become due keep their order and are due from now on, because a floor may lie just below now; messages
    -- that are already due keep their places. Rows are locked in the order of their ids, as by a worker that ends leases.
    execute format(
        'with held as materialized (
             select q.id, q.due_at from trunkline.%1$I q order by q.id for update
         ), line as (
             select h.id, h.due_at, dense_rank() over (partition by h.due_at > $1 and h.due_at - $2 <= $1 order by h.due_at) as place from held h
         ), moved as (
             update trunkline.%1$I q
             set enqueued_at = q.enqueued_at - $2, %2$s
                 due_at = case when l.due_at <= $1 then l.due_at else greatest(l.due_at - $2, $1 + l.place * interval ''1 microsecond'') end
             from line l where q.id = l.id
             returning q.size
         )
         select coalesce(sum(m.size), 0) from moved m',
        'queue_' || queue, case when settings.keyed then
             'place = case when q.place <= $1 then q.place else greatest(l.due_at - $2, $1 + l.place * interval ''1 microsecond'') end,' end)
        into messages using clock, passed;
    execute format('update trunkline.%I d set enqueued_at = d.enqueued_at - $1, dead_at = d.dead_at - $1', 'dead_' || queue) using passed;
    execute format('update trunkline.%I a set enqueued_at = a.enqueued_at - $1, archived_at = a.archived_at - $1', 'archive_' || queue) using passed;
    if settings.keyed then
        execute format('update trunkline.%I l set until = l.until - $1 where isfinite(l.until)', 'line_' || queue) using passed;
        execute format('update trunkline.%I h set held_until = h.held_until - $1, starts_until = h.starts_until - $1, empty_at = h.empty_at - $1',
                       'lane_' || queue) using passed;
    end if;
    if settings.uniqueness then
        execute format('update trunkline.%I u set until = u.until - $1, claimed_at = u.claimed_at - $1 where u.until is not null',
                       'unique_' || queue) using passed;
    end if;
    update trunkline.bucket b set filled_at = b.filled_at - passed where b.queue = shift.queue;
    perform pg_notify('trunkline.' || queue, '');
    if has_table_privilege('trunkline.schedule', 'update') then
        update trunkline.schedule s set next_at = s.next_at - passed, owed_at = s.owed_at - passed where s.queue = shift.queue and s.placed;
        perform pg_notify('trunkline._schedules', '') where found;
    end if;
    return messages;
end $$;
