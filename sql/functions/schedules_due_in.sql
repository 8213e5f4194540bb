create or replace function trunkline.schedules_due_in(since timestamptz, out due_in float8, out clock timestamptz)
    language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
-- Returns the number of seconds until a schedule needs attention from any session (null if none does), and the current
-- time of the clock. Also repairs what was computed while the clock was ahead.
begin
    perform trunkline.right_schedules();
    select s.next_at into clock from trunkline.schedule s
    where not s.paused and s.next_at >= since and s.next_at < 'infinity' order by s.next_at limit 1;
    due_in := extract(epoch from clock - clock_timestamp());
    clock := clock_timestamp();
end $$;
