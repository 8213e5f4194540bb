create or replace function trunkline.{do_stray_}(floor timestamptz, low tid, high tid)
    returns timestamptz language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexscan = off set enable_indexonlyscan = off
    set enable_bitmapscan = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Returns the oldest due time below the floor in a part of the table, which is read page by page.
#variable_conflict use_variable
begin
    return (select min(q.due_at) from trunkline.{queue_} q where q.ctid >= low and q.ctid < high and q.due_at < floor);
end $f$;
