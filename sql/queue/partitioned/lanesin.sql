create or replace function trunkline.{do_lanesin_}(holder bigint)
    returns float8 language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Returns how many seconds a holder that found nothing may sleep. After that, a message may be due,
-- another worker's partition may be free, or the limits may allow a message. Returns 0 if the first
-- row of a partition must first move to the backlog of its key, which takes several calls, and
-- do_lanes_ moves it for this holder. The result is negative if due messages wait only for their
-- key, which is paused for less than a second: its absolute value is the time until the pause ends.
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
    held float8;
    rests timestamptz;
begin
    if {limited} then
        held := trunkline.{do_allowedin_}();
    end if;
    -- As in do_lanes_, a holder reads its partitions that no other worker requests, and free
    -- partitions while it has fewer than its share.
    if held is null and not {paused} and exists (
        select from trunkline.{lane_} h,
             lateral (select q.keys from trunkline.{queue_} q
                      where q.lane = h.lane and q.line = '' and (q.place, q.id + 0) >= (h.floor, 0) and q.place <= clock and q.due_at <= clock
                      order by q.place, q.id + 0 limit 1) f
        where h.lane in (select w.lane from trunkline.{line_} w)
          and case when h.held_until > clock then h.holder = holder and h.wanted_until <= clock
                   else (select count(*) filter (where s.holder = holder)
                                < ({key_lanes} + count(distinct s.holder) filter (where s.holder <> holder))
                                  / (count(distinct s.holder) filter (where s.holder <> holder) + 1)
                         from trunkline.{lane_} s where s.lane >= 0 and s.held_until > clock) end
          and exists (select from unnest(f.keys) k(key) join trunkline.{line_} w on w.lane = h.lane and w.key = k.key)) then
        return 0;
    end if;
    rests := (
        select min(w.until) from trunkline.{lane_} h join trunkline.{line_} w on w.lane = h.lane,
             lateral (select q.due_at from trunkline.{queue_} q where q.lane = w.lane and q.line = w.key order by q.place, q.id + 0 limit 1) f
        where h.holder = holder and h.held_until > clock and w.until > clock and w.until <= clock + interval '1 second' and f.due_at <= clock);
    if rests is not null then
        return -extract(epoch from rests - clock);
    end if;
    return least(held, extract(epoch from least(
        (select q.due_at from trunkline.{queue_} q where q.due_at > clock order by q.due_at, q.id + 0 limit 1),
        case when {key_per_second}::float8 is not null then (
            select min(w.until) from trunkline.{lane_} h join trunkline.{line_} w on w.lane = h.lane
            where h.holder = holder and h.held_until > clock and w.until > clock) end,
        (select min(h.held_until) from trunkline.{lane_} h where h.lane >= 0 and h.held_until > clock and h.holder <> holder)) - clock)::float8);
end $f$;
