create or replace function trunkline.{do_want_}(n int, share int, holder bigint, until timestamptz)
    returns void language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Asks the holder with the most partitions to release those above its equal share, at most n of them.
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
    most record;
begin
    select o.holder, count(*) as lanes, count(*) filter (where o.wanted_until > clock) as wanted into most from trunkline.{lane_} o
    where o.held_until > clock and o.holder <> holder group by o.holder order by 2 desc limit 1;
    n := least(n, most.lanes - most.wanted - share);
    if n > 0 then
        update trunkline.{lane_} h set wanted_until = until
        from (select w.lane from trunkline.{lane_} w
              where w.holder = most.holder and w.held_until > clock and w.wanted_until <= clock
              order by w.served_at limit n for update skip locked) w
        where h.lane = w.lane;
    end if;
end $f$;
