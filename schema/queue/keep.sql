-- A lane is held for as long as the leases in it last.
create or replace function trunkline.{do_keep_}(ids bigint[], lease interval)
    returns void language plpgsql {planner} as $f$
#variable_conflict use_variable
begin
    update trunkline.{lane_} l set held_until = clock_timestamp() + lease * 1.5, starts_until = greatest(l.starts_until, clock_timestamp() + lease / 2)
    from (select h.lane from trunkline.{lane_} h
          where h.held_until < clock_timestamp() + lease
            and h.lane in (select q.lane from unnest(ids) d(id) join trunkline.{queue_} q on q.id = d.id)
          order by h.lane for update) h
    where l.lane = h.lane;
end $f$;
