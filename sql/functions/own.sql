create or replace function trunkline.own(statement text, r anyelement) returns jsonb
    language plpgsql stable set search_path = pg_catalog, pg_temp
    set datestyle = 'ISO' set intervalstyle = 'postgres' set extra_float_digits = 1 set timezone = 'UTC' set lc_monetary = 'C' as $$
-- What a row has in columns that users added, by a statement that knows them (of do_own_QUEUE). Texts come back as they were
-- whatever their types are; so the session must not decide how they are written. Measured at 23 us a row, 9 of them for
-- the settings; only queues with such columns pay it.
declare
    own jsonb;
begin
    execute statement into own using r;
    return own;
end $$;
