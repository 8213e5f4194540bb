create or replace function trunkline.{do_cut_}(n int, floor {floors})
    returns void language plpgsql {planner} as $f$
-- Makes sure that the first due row fits, for takes in the caller's transaction, and leaves the row where it is. Limits are not locked, because that
-- transaction may have locked them.
#variable_conflict use_variable
declare
    turn record;
begin
    {refuse_keys}
    if {limited} then
        n := trunkline.{do_allowed_}(n, false);
    end if;
    if {laned} then
        turn := trunkline.{do_turn_}(floor, array_fill(0::bigint, array[{lanes}]));
        if turn.lane is not null then
            perform trunkline.{do_gather_}(n, 1, true, 0, floor[turn.lane + 1], 0, turn.lane, turn.bound);
        end if;
    else
        perform trunkline.{do_gather_}(n, 1, true, 0, floor, 0);
    end if;
end $f$;
