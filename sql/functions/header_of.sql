create or replace function trunkline.header_of(body text) returns text
    language plpgsql immutable set search_path = pg_catalog, pg_temp set standard_conforming_strings = on as $$
-- Returns the comment at the start of a function's body, without its dashes. It becomes the function's description,
-- which \df+ shows.
begin
    return rtrim(regexp_replace(substring(body from '\A\s*((?:--[^\n]*\n)+)'), '^-- ?', '', 'gn'), E'\n');
end $$;
