create or replace function trunkline.check_rights() returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Fails unless the caller has the rights of the schema's owner, as its members and superusers have.
begin
    if not has_table_privilege('trunkline.migration', 'update') then
        raise exception 'permission denied for table migration' using errcode = 'insufficient_privilege',
            hint = format('Only the role that owns the schema may do this: %s.',
                          (select pg_get_userbyid(c.relowner) from pg_class c where c.oid = 'trunkline.queue'::regclass));
    end if;
end $$;
