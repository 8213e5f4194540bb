-- For takes in somebody's transaction: see that what stands first fits, and leave it where it is.
create or replace function trunkline.{do_cut_}(n int, floor timestamptz)
    returns void language plpgsql {planner} as $f$
#variable_conflict use_variable
begin
    perform trunkline.{do_gather_}(n, 1, true, 0, floor, 0);
end $f$;
