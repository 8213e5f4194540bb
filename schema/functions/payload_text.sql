-- A payload as text, written in one way whatever the settings of the session are, so that every session reads the same from it.
create or replace function trunkline.payload_text(payload anyelement) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp
    set datestyle = 'ISO, YMD' set intervalstyle = postgres set timezone = 'UTC' set extra_float_digits = 3 set bytea_output = hex set lc_monetary = 'C' as $$
begin
    return payload::text;
end $$;
