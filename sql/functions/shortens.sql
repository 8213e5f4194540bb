create or replace function trunkline.shortens(type regtype) returns bool
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Returns whether a cast to a type may shorten a value without an error: to a domain over varchar(3), to name, to "char"
-- and to arrays of these.
declare
    below pg_type;
begin
    select * into below from pg_type t where t.oid = type;
    while below.typtype = 'd' or below.typelem <> 0 and below.typsubscript = 'array_subscript_handler'::regproc loop
        if below.typtype = 'd' and below.typtypmod >= 0 then
            return true;
        end if;
        select * into below from pg_type t where t.oid = case when below.typtype = 'd' then below.typbasetype else below.typelem end;
    end loop;
    return coalesce(below.oid in ('name'::regtype, '"char"'::regtype), false);
end $$;
