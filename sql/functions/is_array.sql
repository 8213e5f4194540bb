create or replace function trunkline.is_array(type regtype) returns bool
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Returns whether a type is an array, or a domain over an array at any depth.
begin
    return exists (select from pg_type t where t.oid = trunkline.base_type(type) and t.typelem <> 0
                   and t.typsubscript = 'array_subscript_handler'::regproc);
end $$;
