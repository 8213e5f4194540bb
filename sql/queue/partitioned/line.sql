create or replace function trunkline.{do_line_}(keys text[], pauses float8[])
    returns void language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Gives these keys their own backlogs, from which nothing is leased for a while. The worker already
-- has enough of their messages, and messages of other keys in the same partition should not wait.
-- Pauses are in seconds; each key is named once.
#variable_conflict use_variable
begin
    perform from trunkline.{lane_} where false; -- locks this table first, as does a session that adds partitions
    insert into trunkline.{line_} as l (lane, key, until)
    select h.lane, k.key, clock_timestamp() + k.pause * interval '1 second'
    from unnest(keys, pauses) k(key, pause)
    -- the partitions may have changed since the call began
    join trunkline.{lane_} h on h.lane = {first_lane} + trunkline.lane_of(k.key, {key_lanes})
    order by 1, 2
    on conflict (lane, key) do update set until = greatest(l.until, excluded.until);
end $f$;
