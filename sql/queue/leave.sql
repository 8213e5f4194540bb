create or replace function trunkline.{do_leave_}(lanes int[], holder bigint)
    returns void language plpgsql {planner} as $f$
-- Gives lanes back, or all of a holder (null), but for those of which something is leased: then the holder keeps them for as long. A worker that waits for
-- a lane is notified. What is leased no more does not begin any more.
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    update trunkline.{lane_} g set holder = null, held_until = '-infinity', wanted_until = '-infinity', starts_until = least(g.starts_until, clock)
    from (select h.lane from trunkline.{lane_} h
          where h.lane >= 0 and h.holder = holder and (lanes is null or h.lane = any (lanes)) and h.held_until > clock
          order by h.lane for update) h
    where g.lane = h.lane
      and g.lane <> all (array( -- once for all, along the due times, where leases end; not along the lanes, with all that waits in them
        select distinct q.lane from trunkline.{queue_} q where q.attempt > 0 and q.error is null and q.due_at > clock));
    if found then
        perform pg_notify({channel}, '');
    end if;
end $f$;
