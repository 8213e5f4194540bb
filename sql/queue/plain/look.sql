create or replace function trunkline.{do_look_}(floor timestamptz)
    returns table (oldest timestamptz, candidate timestamptz, due_in float8, running bigint, next bigint, cost float8)
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Returns what a consumer needs to move its floor, and how long it may sleep. At any isolation
-- level, now() is earlier than the snapshot. So every transaction that reads an earlier due_at from
-- the clock has an id below "next" (see trunkline.clock). "next" comes from age(), which counts
-- from the next id to be assigned. The snapshot's xmax would be too low: it is only one past the
-- last transaction that has ended. Messages that a pause or a limit holds back count as due when
-- the pause or the limit ends.
#variable_conflict use_variable
declare
    began timestamptz := clock_timestamp();
    held float8; -- the seconds until the limits allow a message
begin
    if {limited} then
        held := trunkline.{do_allowedin_}();
    end if;
    return query
        select o.due_at, least(o.due_at, now()),
               case when not {paused} and o.due_at is not null then greatest(extract(epoch from o.due_at - clock_timestamp())::float8, held) end,
               pg_snapshot_xmin(s)::text::bigint,
               pg_snapshot_xmin(s)::text::bigint + age(pg_snapshot_xmin(s)::xid),
               extract(epoch from clock_timestamp() - began)::float8
        from pg_current_snapshot() s
        left join lateral (
            select q.due_at from trunkline.{queue_} q where q.due_at >= floor order by q.due_at, q.id + 0 limit 1) o on true;
end $f$;
