create or replace function trunkline.{do_leased_}()
    returns bigint language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Counts leased messages, including those whose lease may have been extended by a transaction that
-- has not ended. The clock is read before the query, because a volatile function cannot be an index
-- condition: the scan would otherwise read the entries of leases that ended long ago.
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    clock := least(clock, trunkline.{do_extending_}());
    return (select coalesce(sum(q.size), 0) from trunkline.{queue_} q
            where q.attempt > 0 and q.error is null and q.due_at > clock);
end $f$;
