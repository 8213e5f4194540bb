create or replace function trunkline.check_metadata(metadata jsonb) returns jsonb
    language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
-- Returns the metadata of a message; null means none. Fails if it is not an object or too large. The size is counted
-- without the spaces that Postgres prints between the parts, as the library counts it.
declare
    bytes bigint;
begin
    if metadata is null then
        return null;
    elsif jsonb_typeof(metadata) <> 'object' then
        raise exception 'metadata must be a JSON object, not %', left(metadata::text, 100) using errcode = 'invalid_parameter_value',
            hint = 'Pass names with string values, such as {"tenant": "acme"}, or null.';
    end if;
    bytes := octet_length(metadata::text) - greatest(2 * (select count(*) from jsonb_object_keys(metadata)) - 1, 0);
    if bytes > 16384 then
        raise exception 'metadata of % bytes is too large', bytes using errcode = 'program_limit_exceeded',
            hint = 'The metadata of a message is at most 16,384 bytes. Put what is larger into the payload.';
    end if;
    return metadata;
end $$;
