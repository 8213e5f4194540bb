create or replace function trunkline.check_owner() returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Fails unless the current role owns the schema. A superuser or a member of the owner's role also
-- has the owner's rights, but what it created would belong to itself: the owner could not use it,
-- and the next migration would refuse the schema.
declare
    owner text := (select pg_get_userbyid(c.relowner) from pg_class c where c.oid = 'trunkline.queue'::regclass);
begin
    if owner <> current_user then
        raise exception 'the schema belongs to %, not to %', owner, current_user using errcode = 'insufficient_privilege',
            hint = format('What this call creates must belong to the owner, too. Call again as the owner, for example after: set role %I', owner);
    end if;
end $$;
