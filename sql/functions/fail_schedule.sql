create or replace function trunkline.fail_schedule(name text, tick timestamptz, next timestamptz, problem text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
-- Records that a tick could not be made, and why. If next is null, the tick is still owed and is
-- retried after a pause that grows from a second to five minutes. Otherwise the schedule gives up
-- the tick, and next is the time of the following tick. For a schedule that was not placed, tick is
-- the time after which its ticks begin, and it stays so. Does nothing if another session has
-- changed the schedule since the tick was claimed.
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    update trunkline.schedule s
    set owed_at = case when next is null then tick end, problem = problem, placed = s.placed or next is not null,
        placed_at = case when next is null then clock else greatest(clock, tick) end, -- as in place_schedules
        next_at = coalesce(next, clock + least(greatest(clock - tick, interval '1 second'), interval '5 minutes'))
    where s.name = name and coalesce(s.owed_at, s.next_at) = tick;
end $$;
