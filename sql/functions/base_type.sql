create or replace function trunkline.base_type(of regtype) returns regtype
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- What a domain is made of in the end; any other type is itself.
declare
    base oid := of;
    below oid;
begin
    loop
        select t.typbasetype into below from pg_type t where t.oid = base;
        if coalesce(below, 0) = 0 then
            return base;
        end if;
        base := below;
    end loop;
end $$;
