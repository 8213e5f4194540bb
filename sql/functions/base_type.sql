create or replace function trunkline.base_type(of regtype) returns regtype
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Returns the type at the bottom of a domain, or the type itself if it is not a domain.
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
