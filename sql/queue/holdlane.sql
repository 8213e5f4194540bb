create or replace function trunkline.{do_holdlane_}(lanes int[], holder bigint, until timestamptz, floor timestamptz)
    returns void language plpgsql {planner} as $f$
-- A holder has these lanes until then. No row of a lane lies before the first there is now, nor, where there is none, before the queue's
-- floor. Lanes are locked in their order, as by the worker that renews the leases in them, and may have made them last longer meanwhile. Where keys have a
-- rate, a holder begins with no message later than a quarter of its lease after it got that: so the last that it gets until the lane is held again begins a
-- third of the time from now.
#variable_conflict use_variable
declare
    l int;
begin
    for l in select u.lane from unnest(lanes) u(lane) order by u.lane loop
        update trunkline.{lane_} h
        set holder = holder, held_until = greatest(h.held_until, until), served_at = clock_timestamp(), wanted_until = '-infinity',
            starts_until = greatest(h.starts_until, clock_timestamp() + (until - clock_timestamp()) / 3),
            empty_at = case when h.holder = holder and h.held_until > clock_timestamp() then h.empty_at else greatest(h.empty_at, h.starts_until) end,
            floor = greatest(h.floor, least(floor, (
                select q.place from trunkline.{queue_} q where q.lane = l and q.line = '' and (q.place, q.id + 0) >= (h.floor, 0)
                order by q.place, q.id + 0 limit 1)))
        where h.lane = l;
    end loop;
end $f$;
