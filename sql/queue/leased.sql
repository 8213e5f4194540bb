create or replace function trunkline.{do_leased_}()
    returns bigint language plpgsql {planner} as $f$
-- Messages under a lease. The clock is read first, because no index is looked up by a function that may say something else for each row: the entries of
-- leases that ended long ago would be walked over.
declare
    clock timestamptz := clock_timestamp();
begin
    return (select coalesce(sum(q.size), 0) from trunkline.{queue_} q
            where q.attempt > 0 and q.error is null and q.due_at > clock);
end $f$;
