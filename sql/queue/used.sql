create or replace function trunkline.{do_used_}(n int)
    returns void language plpgsql {planner} as $f$
-- Counts dequeued messages, after do_allowed_ was called in the same transaction.
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
