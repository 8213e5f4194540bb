create or replace function trunkline.{do_used_}(n int)
    returns void language plpgsql {planner} as $f$
-- Counts messages that were dequeued, for which do_allowed_ was asked in this transaction.
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    if {per_second} is not null and n > 0 then
        update trunkline.bucket b
        set tokens = {tokens} - n, filled_at = clock
        where b.queue = {literal};
    end if;
end $f$;
