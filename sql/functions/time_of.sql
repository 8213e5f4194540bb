create or replace function trunkline.time_of(epoch bigint) returns timestamptz
    language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
-- Converts microseconds since 1970 to a time; the smallest bigint becomes minus infinity. Exact until the year 2255.
begin
    return case when epoch > '-9223372036854775808' then timestamptz 'epoch' + epoch * interval '1 us' else '-infinity' end;
end $$;
