create or replace function trunkline.check_role(role regrole) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Returns the name of a role. Fails if the role does not exist or owns the schema: its rights can be neither granted
-- nor revoked. Fails also if the caller may not grant rights.
declare
    name text := (select r.rolname from pg_roles r where r.oid = role);
begin
    perform trunkline.check_rights();
    if name is null then
        raise exception 'there is no role %', coalesce(role::text, 'NULL') using errcode = 'undefined_object', hint = 'Pass the name of a role.';
    elsif exists (select from pg_class c where c.oid = 'trunkline.queue'::regclass and c.relowner = role) then
        raise exception '% owns the schema', quote_ident(name) using errcode = 'invalid_parameter_value',
            hint = 'The owner has all rights already. Grant producers, consumers and operators theirs, and let them log in as themselves.';
    end if;
    return name;
end $$;
