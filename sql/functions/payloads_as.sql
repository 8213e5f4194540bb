create or replace function trunkline.payloads_as(payloads anyarray, typed anycompatiblearray) returns anycompatiblearray
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Converts payloads to the type of the second parameter, which may be null, by an assignment: a value that is too long
-- for the type is an error. A cast would shorten it.
begin
    typed := payloads;
    if pg_typeof(typed) in ('name[]'::regtype, '"char"[]'::regtype) and typed::text[] <> payloads::text[] then
        perform trunkline.refuse_cut(pg_typeof(typed[1]));
    end if;
    return typed;
end $$;
