create or replace function trunkline.{do_lower_}(low tid, high tid)
    returns void language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Lowers the floors of partitions to rows that lie below them. Examines a part of the table or,
-- along the index, all of it. Such rows come from a clock that was set back, or from manual
-- changes. Writes nothing if there are no such rows or the role may not write. Only for queues with
-- keys.
#variable_conflict use_variable
declare
    stray record;
begin
    if current_setting('transaction_read_only') = 'on' or not has_column_privilege('trunkline.{lane_}', 'floor', 'update') then
        return;
    elsif low is null then
        select array_agg(l.lane) as lanes, array_agg(f.place) as places into stray
        from trunkline.{lane_} l, lateral (
            select q.place from trunkline.{queue_} q where q.lane = l.lane and q.line = '' order by q.place, q.id + 0 limit 1) f
        where l.lane >= 0 and f.place < l.floor;
    else
        select array_agg(f.lane) as lanes, array_agg(f.place) as places into stray
        from (select q.lane, min(q.place) as place from trunkline.{queue_} q where q.ctid >= low and q.ctid < high and q.line = '' group by q.lane) f
        join trunkline.{lane_} l on l.lane = f.lane where f.place < l.floor;
    end if;
    if stray.lanes is not null then
        update trunkline.{lane_} h set floor = least(h.floor, s.place)
        from (select l.lane, u.place from unnest(stray.lanes, stray.places) u(lane, place) join trunkline.{lane_} l on l.lane = u.lane
              order by l.lane for update of l skip locked) s
        where h.lane = s.lane;
    end if;
end $f$;
