-- A parameter that is a floor, as the functions of the queue take it. SQL sessions keep one floor for all lanes, the lowest.
create or replace function trunkline.in_lanes(queue text, parameter text) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return (select case when q.priorities > 1 then format('array_fill(%s, array[%s])', parameter, q.priorities) else parameter end
            from trunkline.queue q where q.name = queue);
end $$;
