create or replace function trunkline.found_schedule(name text, was_found bool) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Errs, and says what to do, unless there was such a schedule.
begin
    if not was_found then
        raise exception 'there is no schedule %', coalesce(quote_literal(name), 'NULL') using errcode = 'undefined_object',
            hint = 'They are listed by: select name from trunkline.schedule. Make one with trunkline.set_schedule.';
    end if;
end $$;
