create or replace function trunkline.payload_as(payload anyelement, typed anycompatiblearray) returns anycompatiblearray
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Converts one payload, which may itself be an array, like trunkline.payloads_as. Returns an array with one element: a
-- parameter of the payload's own type could not be null if that type is a domain that forbids null.
begin
    typed[1] := payload;
    if pg_typeof(typed) in ('name[]'::regtype, '"char"[]'::regtype) and typed[1]::text <> payload::text then
        perform trunkline.refuse_cut(pg_typeof(typed[1]));
    end if;
    return typed;
end $$;
