create or replace function trunkline.{do_allowed_}(n int, locks bool)
    returns int language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan set row_security = on as $f$
-- Returns how many of n messages the limits allow. With locks, the bucket stays locked until the
-- commit, so that all sessions that dequeue share one count. The caller then has to record what it
-- used with do_used_. A bucket that was filled while a clock was ahead fills from now on. Fails if
-- leased messages are limited and the transaction's snapshot may hide recent leases.
#variable_conflict use_variable
declare
    clock timestamptz;
    seen record;
begin
    if locks and {max_leased} is not null and current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        -- The snapshot may be older than the lock, and would not show the latest leases.
        raise exception 'a transaction that is % cannot dequeue from queue %, which has a limit of leased messages', current_setting('transaction_isolation'), quote_literal({literal})
            using errcode = 'invalid_transaction_state', hint = 'Begin the transaction with: begin isolation level read committed';
    end if;
    if locks and not trunkline.{do_bucket_}() then
        return 0;
    end if;
    if {per_second} is not null then
        clock := clock_timestamp();
        select trunkline.tokens(b.tokens, b.filled_at, {burst}, {per_second}, clock) as tokens, b.filled_at > clock as ahead
        into seen from trunkline.bucket b where b.queue = {literal};
        if locks and seen.ahead then
            update trunkline.bucket b set tokens = seen.tokens, filled_at = clock where b.queue = {literal};
        end if;
        n := least(n, floor(seen.tokens)::int);
    end if;
    if {max_leased} is not null and n > 0 then
        n := least(n, {max_leased} - trunkline.{do_leased_}());
    end if;
    return greatest(n, 0);
end $f$;
