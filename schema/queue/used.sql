-- So many messages were dequeued, for which do_allowed_ was asked in this transaction.
create or replace function trunkline.{do_used_}(n int)
    returns void language plpgsql {planner} as $f$
#variable_conflict use_variable
begin
    if {per_second} is not null and n > 0 then
        update trunkline.bucket b
        set tokens = least({burst}, b.tokens + {per_second} * greatest(extract(epoch from clock_timestamp() - b.filled_at), 0)) - n,
            filled_at = clock_timestamp()
        where b.queue = {literal};
    end if;
end $f$;
