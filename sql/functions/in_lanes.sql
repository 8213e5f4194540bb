create or replace function trunkline.in_lanes(queue text, parameter text) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Returns the text of a statement's parameter that is a floor, in the form that the queue's functions take: an array if
-- the queue has priorities (see trunkline.floors). Never returns null: if the queue has been dropped in the meantime,
-- the caller's statement fails because the function is missing, and not with a syntax error.
begin
    return coalesce((select trunkline.floors(q.priorities, parameter) from trunkline.queue q where q.name = queue), parameter);
end $$;
