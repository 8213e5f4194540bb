create or replace function trunkline.{do_shift_}(passed interval)
    returns bigint language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
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
    with held as materialized (
        select q.id, q.due_at from trunkline.{queue_} q order by q.id for update
    ), line as (
        select h.id, h.due_at,
               dense_rank() over (partition by h.due_at > began and h.due_at - passed <= began order by h.due_at) as place
        from held h
    ), moved as (
        update trunkline.{queue_} q
        set enqueued_at = q.enqueued_at - passed,
            due_at = case when l.due_at <= began then l.due_at
                          else greatest(l.due_at - passed, began + l.place * interval '1 microsecond') end
        from line l where q.id = l.id
        returning q.size
    )
    select coalesce(sum(m.size), 0) into messages from moved m;
    update trunkline.{dead_} d set enqueued_at = d.enqueued_at - passed, dead_at = d.dead_at - passed;
    update trunkline.{archive_} a set enqueued_at = a.enqueued_at - passed, archived_at = a.archived_at - passed;
    if {unique} then
        update trunkline.{unique_} u set until = u.until - passed, claimed_at = u.claimed_at - passed where u.until is not null;
    end if;
    return messages;
end $f$;
