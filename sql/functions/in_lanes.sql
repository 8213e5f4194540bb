create or replace function trunkline.in_lanes(queue text, parameter text) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- A parameter that is a floor, as the functions of the queue take it. SQL sessions keep one floor for all lanes, the lowest.
-- Never null: of a queue that was dropped meanwhile the caller's statement then fails because its function is gone, and not by its syntax.
begin
    return coalesce((select format('array_fill(%s, array[%s])', parameter, q.priorities)
                     from trunkline.queue q where q.name = queue and q.priorities > 1), parameter);
end $$;
