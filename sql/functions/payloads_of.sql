create or replace function trunkline.payloads_of(texts text[], typed anyarray) returns anyarray
    language plpgsql stable set search_path = pg_catalog, pg_temp
    set datestyle = 'ISO, YMD' set intervalstyle = postgres set timezone = 'UTC' set extra_float_digits = 3 set bytea_output = hex set lc_monetary = 'C' as $$
-- Converts texts, as trunkline.written writes them, to payloads; the second parameter has the payloads' type.
begin
    typed := texts;
    return typed;
end $$;
