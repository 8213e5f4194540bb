create or replace function trunkline.check_delay(delay interval) returns interval
    language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
-- Returns the delay before a retry; fails if it is out of bounds.
begin
    if delay is null or delay < '0' or delay > '365 days' then
        raise exception 'a delay of % is out of bounds', coalesce(delay::text, 'null')
            using errcode = 'invalid_parameter_value', hint = 'A delay is at least zero and at most 365 days.';
    end if;
    return delay;
end $$;
