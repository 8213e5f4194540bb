create or replace function trunkline.payloads_of(texts text[], typed anyarray) returns anyarray
    language plpgsql stable set search_path = pg_catalog, pg_temp
    set datestyle = 'ISO, YMD' set intervalstyle = postgres set timezone = 'UTC' set extra_float_digits = 3 set bytea_output = hex set lc_monetary = 'C' as $$
-- Payloads from texts as trunkline.written writes them; the second parameter has their type.
begin
    typed := texts;
    return typed;
end $$;
