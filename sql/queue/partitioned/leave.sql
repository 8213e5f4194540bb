create or replace function trunkline.{do_leave_}(lanes int[], holder bigint)
    returns void language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Releases partitions, or all partitions of a holder (null). If messages of a partition are still
-- leased, the holder keeps the partition until their leases end. It also keeps a partition from
-- which another session is leasing at this moment, for example under the number of a holder that
-- has lost its connection. Notifies a worker that waits for a partition. No handler starts a
-- message that is no longer leased.
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    -- The next statement sees all leases of the session that held these locks before, because its
    -- snapshot is taken after the locks.
    lanes := array(
        select -1 - h.lane from trunkline.{lane_} h
        where h.lane < 0 and (lanes is null or -1 - h.lane = any (lanes))
          and exists (select from trunkline.{lane_} o where o.lane = -1 - h.lane and o.holder = holder and o.held_until > clock)
        for update of h skip locked);
    update trunkline.{lane_} g set holder = null, held_until = '-infinity', wanted_until = '-infinity', starts_until = least(g.starts_until, clock)
    from (select h.lane from trunkline.{lane_} h
          where h.lane >= 0 and h.holder = holder and h.lane = any (lanes) and h.held_until > clock
          order by h.lane for update) h
    where g.lane = h.lane
      -- Evaluated once, along the index on due times. `lane + 0` keeps the planner off the index that
      -- begins with the lane and contains all waiting messages. No lease ends after the hold of its
      -- partition: messages that are due later are delayed or wait for a retry, and may be many.
      and g.lane <> all (array(
        select distinct q.lane + 0 from trunkline.{queue_} q
        where q.attempt > 0 and q.error is null and q.due_at > clock
          and q.due_at < (select max(o.held_until) from trunkline.{lane_} o where o.lane >= 0 and o.holder = holder) + interval '1 minute'));
    if found then
        perform pg_notify({channel}, '');
    end if;
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform trunkline.check_snapshot({literal}); -- otherwise leases could be invisible
    end if;
end $f$;
