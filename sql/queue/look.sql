create or replace function trunkline.{do_look_}(floor {floors})
    returns table (oldest timestamptz, candidate timestamptz, due_in float8, running bigint, next bigint, cost float8)
    language plpgsql {planner} as $f$
-- Returns what a consumer needs to move its floor and to know how long it may sleep. now() is earlier than the snapshot at any isolation level: so a
-- transaction that reads an earlier due_at from the clock has an id below "next" (see trunkline.clock). age() counts from the next id to be assigned;
-- a snapshot's xmax is only one past the last transaction that has ended. Messages that a pause or a limit holds back count as due when they are
-- released. A queue with priorities has one row, and one floor, for each lane.
#variable_conflict use_variable
declare
    began timestamptz := clock_timestamp();
begin
    if {laned} then
        return query
            select o.due_at, least(o.due_at, now()),
                   case when not {paused} then greatest(extract(epoch from o.due_at - clock_timestamp())::float8,
                                                        case when {limited} then trunkline.{do_allowedin_}() end) end,
                   pg_snapshot_xmin(s)::text::bigint,
                   pg_snapshot_xmin(s)::text::bigint + age(pg_snapshot_xmin(s)::xid),
                   extract(epoch from clock_timestamp() - began)::float8
            from pg_current_snapshot() s cross join generate_series(0, {lanes} - 1) l(lane)
            left join lateral (
                select q.due_at from trunkline.{queue_} q where q.lane = l.lane and q.due_at >= floor[l.lane + 1] order by q.due_at, q.id + 0 limit 1) o on true
            order by l.lane;
    else
        return query
            select o.due_at, least(o.due_at, now()),
                   case when not {paused} then greatest(extract(epoch from o.due_at - clock_timestamp())::float8,
                                                        case when {limited} then trunkline.{do_allowedin_}() end) end,
                   pg_snapshot_xmin(s)::text::bigint,
                   pg_snapshot_xmin(s)::text::bigint + age(pg_snapshot_xmin(s)::xid),
                   extract(epoch from clock_timestamp() - began)::float8
            from pg_current_snapshot() s
            left join lateral (
                select q.due_at from trunkline.{queue_} q where q.due_at >= floor order by q.due_at, q.id + 0 limit 1) o on true;
    end if;
end $f$;
