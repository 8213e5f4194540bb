create or replace function trunkline.due_of(delay interval) returns float8
    language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
-- Converts a delay to the form that the library's statements use: seconds from now or, if negative, a time in seconds
-- since 1970. A time is needed because a month is not a fixed number of seconds.
begin
    if delay is null or delay < '0' or delay > '36500 days' then
        raise exception 'a delay of % is out of bounds', coalesce(delay::text, 'null') using errcode = 'invalid_parameter_value',
            hint = 'A delay is at least zero and at most 36500 days.';
    end if;
    return case when delay = '0' then 0 else -extract(epoch from clock_timestamp() + delay) end;
end $$;
