create or replace function trunkline.shift_messages(queue text, passed interval) returns bigint
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off as $$
-- Simulates, for tests, that this much time has passed for the messages of a queue. Messages that become due keep their
-- order and are due from now on, because a floor may lie just below now; messages that are already due keep their
-- places. Rows are locked in the order of their ids, as by a worker that ends leases.
#variable_conflict use_variable
declare
    began timestamptz := trunkline.clock();
    later text := 'greatest(l.due_at - $1, $2 + l.place * interval ''1 microsecond'')';
    now_is trunkline.queue;
    messages bigint;
begin
    if passed is null or passed < '0' or passed > '36500 days' then
        raise exception 'a time of % is out of bounds', coalesce(passed::text, 'null') using errcode = 'invalid_parameter_value',
            hint = 'Let at least no time pass, and at most 36500 days.';
    end if;
    select * into now_is from trunkline.queue q where q.name = queue;
    if now_is.lanes > 0 then
        -- A worker that leases along a lane skips rows that are locked here, and messages behind them must not come first.
        execute format('select from trunkline.%I h where h.lane < 0 order by h.lane for update', 'lane_' || queue);
    end if;
    execute format($q$
        with held as materialized (
            select q.id, q.due_at from trunkline.%1$I q order by q.id for update
        ), line as (
            select h.id, h.due_at,
                   dense_rank() over (partition by h.due_at > $2 and h.due_at - $1 <= $2 order by h.due_at) as place
            from held h
        ), moved as (
            update trunkline.%1$I q
            set enqueued_at = q.enqueued_at - $1, %2$s
                due_at = case when l.due_at <= $2 then l.due_at else %3$s end
            from line l where q.id = l.id
            returning q.size
        )
        select coalesce(sum(m.size), 0) from moved m $q$,
        'queue_' || queue, case when now_is.lanes > 0 then format('place = case when q.place <= $2 then q.place else %s end,', later) end, later)
        into messages using passed, began;
    execute format('update trunkline.%I d set enqueued_at = d.enqueued_at - $1, dead_at = d.dead_at - $1', 'dead_' || queue) using passed;
    execute format('update trunkline.%I a set enqueued_at = a.enqueued_at - $1, archived_at = a.archived_at - $1', 'archive_' || queue) using passed;
    if now_is.lanes > 0 then
        execute format('with lines as (update trunkline.%I l set until = l.until - $1 where isfinite(l.until)) '
                       'update trunkline.%I h set held_until = h.held_until - $1, starts_until = h.starts_until - $1, empty_at = h.empty_at - $1',
                       'line_' || queue, 'lane_' || queue) using passed;
    end if;
    if now_is.uniqueness then
        execute format('update trunkline.%I u set until = u.until - $1, claimed_at = u.claimed_at - $1 where u.until is not null', 'unique_' || queue)
            using passed;
    end if;
    return messages;
end $$;
