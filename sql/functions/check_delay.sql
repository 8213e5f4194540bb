create or replace function trunkline.check_delay(delay interval) returns interval
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Returns the delay before a retry; fails if it is out of bounds. These are the bounds of check_lease, except that a delay
-- may be zero.
begin
    if delay is null or delay < '0' or delay > '365 days' or now() + delay > now() + interval '8808 hours' then
        raise exception 'a delay of % is out of bounds', coalesce(delay::text, 'null')
            using errcode = 'invalid_parameter_value', hint = 'A delay is at least zero and at most 365 days, or a year; months have the lengths that they have in the calendar.';
    end if;
    return delay;
end $$;
