create or replace function trunkline.{do_allowedin_}()
    returns float8 language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan set row_security = on as $f$
-- Returns the seconds until the limits allow a message, as far as only time decides; null if they
-- allow one now. While another session has locked the limits, nothing is allowed, and it is unknown
-- for how long. Locks nothing.
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp(); -- read before the query, as in do_leased_
    pause constant float8 := 0.25; -- the longest pause of consumers that wait for locked messages
    room float8;
    token float8;
begin
    if {max_leased} is not null and trunkline.{do_leased_}() >= {max_leased} then
        room := (select extract(epoch from min(q.due_at) - clock) from trunkline.{queue_} q
                 where q.attempt > 0 and q.error is null and q.due_at > clock);
        if trunkline.{do_extending_}() is not null then
            -- a lease that has ended may count only until the transaction that extends leases ends
            room := least(room, pause);
        end if;
    end if;
    if {per_second} is not null then
        token := (select (1 - trunkline.tokens(b.tokens, b.filled_at, {burst}, {per_second}, clock)) / {per_second}::float8
                  from trunkline.bucket b where b.queue = {literal});
    end if;
    if room is null and not coalesce(token > 0, false) and exists (
            select from pg_locks l
            where l.locktype = 'relation' and l.relation = to_regclass('trunkline.{limit_}') and l.mode = 'ExclusiveLock' and l.granted
              and l.database = (select d.oid from pg_database d where d.datname = current_database()) and l.pid is distinct from pg_backend_pid()) then
        return pause;
    end if;
    return greatest(room, case when token > 0 then token end);
end $f$;
