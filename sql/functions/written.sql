create or replace function trunkline.written(payload anyelement) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp set datestyle = 'ISO' set intervalstyle = 'postgres' set timezone = 'UTC'
    set extra_float_digits = 1 set bytea_output = 'hex' set lc_monetary = 'C' set xmloption = 'content' as $$
-- Converts a payload to a text that means the same in every session, whatever its settings; see trunkline.read_as. It
-- is used for payloads that move between sessions: to another server, or into a schedule.
begin
    return payload::text;
end $$;
