create or replace function trunkline.fail_schedule(name text, tick timestamptz, next timestamptz, problem text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
-- A tick could not be made, and why. Where next is null it is owed, and tried again after a pause that grows from a second to five minutes; else it is
-- given up for the next one. Does nothing where another session has changed it since the tick was claimed.
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    update trunkline.schedule s
    set owed_at = case when next is null then tick end, problem = problem, placed = true, placed_at = clock,
        next_at = coalesce(next, clock + least(greatest(clock - tick, interval '1 second'), interval '5 minutes'))
    where s.name = name and s.placed and coalesce(s.owed_at, s.next_at) = tick;
end $$;
