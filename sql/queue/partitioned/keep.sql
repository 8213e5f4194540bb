create or replace function trunkline.{do_keep_}(ids bigint[], lease interval, holders text[])
    returns void language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Extends the hold on a partition to the end of the leases in it. holders: which holder had which
-- partition before these leases were extended. If the leases ended before the extension was done,
-- another worker may have received a partition since then. That worker hands out the messages
-- behind them, so the leases are lost. served_at is the time that the clock showed: see do_right_.
#variable_conflict use_variable
declare
    clock timestamptz;
    l record;
begin
    if exists (select from trunkline.{lane_} h where h.lane >= 0 and h.served_at > clock_timestamp() + interval '1 s') then
        perform trunkline.{do_right_}(1);
    end if;
    for l in
        select h.lane, h.holder, h.held_until < clock_timestamp() + lease as ends from trunkline.{lane_} h
        where h.lane in (select q.lane from unnest(ids) d(id) join trunkline.{queue_} q on q.id = d.id)
        order by h.lane for update
    loop
        if l.lane || ' ' || l.holder <> all (holders) is not false then
            raise exception 'the leases of queue % ended before they were extended', quote_literal({literal}) using errcode = 'TL001',
                hint = 'Nothing was extended. Another worker may hold the partitions now.';
        end if;
        continue when not l.ends;
        clock := clock_timestamp(); -- read once, because the clock may be corrected between two readings
        update trunkline.{lane_} h
        set held_until = clock + lease * 1.5, starts_until = greatest(h.starts_until, clock + lease / 2), served_at = clock
        where h.lane = l.lane;
    end loop;
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform trunkline.check_snapshot({literal}); -- otherwise partitions could be invisible
    end if;
end $f$;
