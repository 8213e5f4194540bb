create or replace function trunkline.refuse_cut(type regtype) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Raises 22001 for a value that PostgreSQL would shorten silently, as it does with the types name and "char".
begin
    raise exception 'value too long for type %', type using errcode = 'string_data_right_truncation',
        hint = 'A value of type name has at most 63 bytes, of type "char" one. Use the type text.';
end $$;
