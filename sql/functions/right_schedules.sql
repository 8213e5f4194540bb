create or replace function trunkline.right_schedules() returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
-- Repairs next ticks that were computed while the clock was more than a minute ahead: the next session that makes ticks
-- computes them again. So a clock that was set back stops no schedule, and a clock that was changed slightly repeats no
-- tick. Returns how many schedules changed.
declare
    clock timestamptz := clock_timestamp();
    count bigint := 0;
begin
    if exists (select from trunkline.schedule s where s.placed_at > clock + interval '1 minute') then
        update trunkline.schedule s
        set placed = false, placed_at = null, owed_at = null, next_at = clock, last_at = least(s.last_at, clock)
        where s.name = any (array(
            select a.name from trunkline.schedule a where a.placed_at > clock + interval '1 minute' for update skip locked));
        get diagnostics count = row_count;
    end if;
    return count;
end $$;
