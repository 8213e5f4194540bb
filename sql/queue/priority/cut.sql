create or replace function trunkline.{do_cut_}(n int, floor timestamptz[])
    returns void language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Splits the first due row if it does not fit, for takes in the caller's transaction, and leaves it
-- in the queue. Limits are not locked, because the caller's transaction may have locked them.
#variable_conflict use_variable
declare
    turn record;
begin
    if {limited} then
        n := trunkline.{do_allowed_}(n, false);
    end if;
    turn := trunkline.{do_turn_}(floor, array_fill(0::bigint, array[{lanes}]));
    if turn.lane is not null then
        perform trunkline.{do_gather_}(n, 1, true, 0, floor[turn.lane + 1], 0, turn.lane, turn.bound);
    end if;
end $f$;
