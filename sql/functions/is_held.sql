create or replace function trunkline.is_held() returns bool
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Returns whether something keeps vacuum from removing rows that were deleted a while ago. A role
-- may not see when the transactions of other sessions began, but it sees how many transactions have
-- begun since.
declare
    old constant int := 20000;
begin
    return exists (select from pg_stat_activity a
                   where a.datname = current_database() and a.backend_xmin is not null and a.pid <> pg_backend_pid()
                   and (age(a.backend_xmin) > old or a.xact_start < clock_timestamp() - interval '1 minute'))
        or exists (select from pg_prepared_xacts p
                   where p.database = current_database() and (age(p.transaction) > old or p.prepared < clock_timestamp() - interval '1 minute'))
        or exists (select from pg_replication_slots s where age(s.xmin) > old)
        or exists (select from pg_stat_replication r where age(r.backend_xmin) > old);
end $$;
