-- How many of n messages the limits allow. With locks the bucket is locked until the commit, so that all who dequeue count as one; what is
-- used up is to be told by do_used_ then.
create or replace function trunkline.{do_allowed_}(n int, locks bool)
    returns int language plpgsql {planner} as $f$
#variable_conflict use_variable
declare
    tokens float8;
begin
    if locks and not trunkline.{do_bucket_}() then
        return 0;
    end if;
    if {per_second} is not null then
        select least({burst}, b.tokens + {per_second} * greatest(extract(epoch from clock_timestamp() - b.filled_at), 0))
        into tokens from trunkline.bucket b where b.queue = {literal};
        n := least(n, floor(tokens)::int);
    end if;
    if {max_leased} is not null and n > 0 then
        n := least(n, {max_leased} - trunkline.{do_leased_}());
    end if;
    return greatest(n, 0);
end $f$;
