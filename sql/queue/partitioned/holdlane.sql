create or replace function trunkline.{do_holdlane_}(lanes int[], holder bigint, until timestamptz, floor timestamptz, clock timestamptz)
    returns void language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Gives these partitions to a holder until a time. The new floor of a partition is the place of its
-- first row or, if it has none, the queue's floor: no row of the partition lies below. The function
-- locks partitions in the order of their numbers. So does the worker that renews the leases in
-- them, and it may have extended the partitions in the meantime. If keys have a rate, a holder
-- starts no message later than a quarter of its lease after it received the message. So the last
-- message that it receives before the partition is held again starts at most a third of this
-- duration from now.
--
-- clock: the time from which the caller counted the duration. If a clock is corrected in the
-- meantime, times from before and after the correction must not be mixed: do_right_ would not find
-- them.
#variable_conflict use_variable
declare
    l int;
begin
    for l in select u.lane from unnest(lanes) u(lane) order by u.lane loop
        update trunkline.{lane_} h
        set holder = holder, held_until = greatest(h.held_until, until), served_at = clock, wanted_until = '-infinity',
            starts_until = greatest(h.starts_until, clock + (until - clock) / 3),
            empty_at = case when h.holder = holder and h.held_until > clock then h.empty_at else greatest(h.empty_at, h.starts_until) end,
            floor = greatest(h.floor, least(floor, (
                select q.place from trunkline.{queue_} q where q.lane = l and q.line = '' and (q.place, q.id + 0) >= (h.floor, 0)
                order by q.place, q.id + 0 limit 1)))
        where h.lane = l;
    end loop;
end $f$;
