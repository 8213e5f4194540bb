create or replace function trunkline.{do_shift_}(passed interval)
    returns bigint language plpgsql {planner} as $f$
-- Simulates, for tests, that this much time has passed. Messages that become due keep their order and are due from now on, because a floor may lie
-- just below now; messages that are already due keep their places. Rows are locked in the order of their ids, as by a worker that ends leases.
#variable_conflict use_variable
declare
    began timestamptz := trunkline.clock();
    messages bigint;
begin
    if passed is null or passed < '0' or passed > '36500 days' then
        raise exception 'a time of % is out of bounds', coalesce(passed::text, 'null') using errcode = 'invalid_parameter_value',
            hint = 'Let at least no time pass, and at most 36500 days.';
    end if;
    if {keyed} then
        -- A worker that leases along a lane skips rows that are locked here, and messages behind them must not come first.
        perform from trunkline.{lane_} h where h.lane < 0 order by h.lane for update;
    end if;
    with held as materialized (
        select q.id, q.due_at from trunkline.{queue_} q order by q.id for update
    ), line as (
        select h.id, h.due_at,
               dense_rank() over (partition by h.due_at > began and h.due_at - passed <= began order by h.due_at) as place
        from held h
    ), moved as (
        update trunkline.{queue_} q
        set enqueued_at = q.enqueued_at - passed, {shift_place}
            due_at = case when l.due_at <= began then l.due_at
                          else greatest(l.due_at - passed, began + l.place * interval '1 microsecond') end
        from line l where q.id = l.id
        returning q.size
    )
    select coalesce(sum(m.size), 0) into messages from moved m;
    update trunkline.{dead_} d set enqueued_at = d.enqueued_at - passed, dead_at = d.dead_at - passed;
    update trunkline.{archive_} a set enqueued_at = a.enqueued_at - passed, archived_at = a.archived_at - passed;
    {passed_keys};
    {shift_lines};
    return messages;
end $f$;
