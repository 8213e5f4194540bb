create or replace function trunkline.found_schedule(name text, was_found bool) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Fails, with a hint, if the schedule was not found.
begin
    if not was_found then
        raise exception 'there is no schedule %', coalesce(quote_literal(name), 'NULL') using errcode = 'undefined_object',
            hint = 'List schedules with: select name from trunkline.schedule. Create one with trunkline.set_schedule.';
    end if;
end $$;
