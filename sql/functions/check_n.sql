create or replace function trunkline.check_n(n int) returns int
    language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
-- Returns the number of messages that a caller asked for; fails if it is null or negative.
begin
    if n is null or n < 0 then
        raise exception 'n is %, but a number of messages is at least 0', coalesce(n::text, 'null')
            using errcode = 'invalid_parameter_value', hint = 'Ask for as many messages as you can handle at a time.';
    end if;
    return n;
end $$;
