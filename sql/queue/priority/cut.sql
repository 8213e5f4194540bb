create or replace function trunkline.{do_cut_}(n int, floor timestamptz[])
    returns void language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Splits the first due row that is not locked, if it does not fit, for takes in the caller's
-- transaction, and leaves it in the queue. Limits are not locked, because the caller's transaction
-- may have locked them.
#variable_conflict use_variable
declare
    at record;
    turn record;
    dues timestamptz[] := floor;
    next_ids bigint[] := array_fill(0::bigint, array[{lanes}]);
    to_bury int;
begin
    if {limited} then
        n := trunkline.{do_allowed_}(n, false);
    end if;
    while n > 0 and not {paused} loop
        turn := trunkline.{do_turn_}(dues, next_ids);
        exit when turn.lane is null;
        at := trunkline.{do_gather_}(n, 1, true, 0, dues[turn.lane + 1], next_ids[turn.lane + 1], turn.lane, turn.bound, to_bury);
        to_bury := at.to_bury;
        exit when at.got > 0 or to_bury <= 0;
        -- Passes over the rows that other sessions hold: see do_take_.
        dues[turn.lane + 1] := case when at.more then at.due else turn.bound end;
        next_ids[turn.lane + 1] := case when at.more then at.id else 9223372036854775807 end;
    end loop;
end $f$;
