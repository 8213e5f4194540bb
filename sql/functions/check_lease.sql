create or replace function trunkline.check_lease(lease interval) returns interval
    language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
-- Returns the duration of a lease; fails if it is out of bounds. A dequeue first compares by itself, because a call to a
-- function with a setting is not inlined.
begin
    if lease is null or lease <= '0' or lease > '365 days' then
        raise exception 'a lease of % is out of bounds', coalesce(lease::text, 'null')
            using errcode = 'invalid_parameter_value', hint = 'A lease is more than zero and at most 365 days.';
    end if;
    return lease;
end $$;
