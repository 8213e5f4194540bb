create or replace function trunkline.{do_reschedule_}(ids bigint[], due timestamptz)
    returns table (id bigint, done bool) language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Makes waiting messages due at a time, but never at a time below a floor. A time in the past means
-- now or, for a message that is already due, its present due time. A message whose lease expired
-- would count as leased again if its due time moved to the future. So it counts as failed instead.
-- The result also contains busy messages, with done = false.
#variable_conflict use_variable
declare
    picked record;
begin
    if due is null or due > clock_timestamp() + interval '36500 days' then
        raise exception 'a due time of % is out of bounds', coalesce(due::text, 'null') using errcode = 'invalid_parameter_value',
            hint = 'A message is due at most 36500 days from now; a time that has passed means now.';
    end if;
    picked := trunkline.{do_pick_}(ids, false);
    return query
        with moved as (
            update trunkline.{queue_} q
            set due_at = case when due > clock_timestamp() then due else least(q.due_at, trunkline.clock()) end,
                place = case when due > clock_timestamp() then due else least(q.place, trunkline.clock()) end,
                error = case when q.attempt > 0 and due > clock_timestamp() then coalesce(q.error, 'the lease expired') else q.error end
            from unnest(picked.first, picked.sizes) d(id, size)
            where q.id >= d.id and q.id < d.id + d.size
            returning q.id, q.size)
        select m.id + k, true from moved m, generate_series(0, m.size - 1) k;
    return query select b, false from unnest(picked.busy) b;
end $f$;
