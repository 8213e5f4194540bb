-- Messages under a lease.
create or replace function trunkline.{do_leased_}()
    returns bigint language plpgsql {planner} as $f$
begin
    return (select coalesce(sum(q.size), 0) from trunkline.{queue_} q
            where q.attempt > 0 and q.error is null and q.due_at > clock_timestamp());
end $f$;
