create or replace function trunkline.{do_leased_}()
    returns bigint language plpgsql {planner} as $f$
-- Counts messages under a lease. The clock is read before the query, because a function whose result may change from row to row cannot be an index
-- condition. The scan would walk over the entries of leases that ended long ago.
declare
    clock timestamptz := clock_timestamp();
begin
    return (select coalesce(sum(q.size), 0) from trunkline.{queue_} q
            where q.attempt > 0 and q.error is null and q.due_at > clock);
end $f$;
