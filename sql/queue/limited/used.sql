create or replace function trunkline.{do_used_}(n int)
    returns void language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan set row_security = on as $f$
-- Counts dequeued messages, after do_allowed_ was called in the same transaction.
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    if {per_second} is not null and n > 0 then
        update trunkline.bucket b
        set tokens = trunkline.tokens(b.tokens, b.filled_at, {burst}, {per_second}, clock) - n, filled_at = clock
        where b.queue = {literal};
    end if;
end $f$;
