create or replace function trunkline.in_lanes(queue text, parameter text) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Returns a parameter that is a floor, in the form that the queue's functions take. SQL sessions keep one floor for all
-- lanes: the lowest. Never returns null: if the queue has been dropped in the meantime, the caller's statement fails
-- because the function is missing, and not with a syntax error.
begin
    return coalesce((select format('array_fill(%s, array[%s])', parameter, q.priorities)
                     from trunkline.queue q where q.name = queue and q.priorities > 1), parameter);
end $$;
