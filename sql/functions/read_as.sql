create or replace function trunkline.read_as(written text, sample anyelement) returns anyelement
    language plpgsql stable set search_path = pg_catalog, pg_temp set datestyle = 'ISO' set intervalstyle = 'postgres' set timezone = 'UTC'
    set extra_float_digits = 1 set bytea_output = 'hex' set lc_monetary = 'C' set xmloption = 'content' as $$
-- Converts a text that trunkline.written wrote to the type of the sample, which may be null.
begin
    sample := written;
    return sample;
end $$;
