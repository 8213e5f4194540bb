create or replace function trunkline.floors(priorities int, parameter text) returns text
    language sql stable
    return case when priorities > 1 then format('array_fill(%s, array[%s])', parameter, priorities) else parameter end;
comment on function trunkline.floors(int, text) is 'Returns a parameter that is a floor, in the form that the functions of a queue with this number of priorities take.
SQL sessions keep one floor for all priorities: the lowest.
Written as an expression, so that it is inlined and no search_path matters.';
