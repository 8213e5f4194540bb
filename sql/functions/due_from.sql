create or replace function trunkline.due_from(seconds float8) returns timestamptz
    language sql volatile parallel unsafe
    return case when seconds >= 0 then trunkline.clock() + seconds * interval '1 second' else greatest(trunkline.clock(), to_timestamp(-seconds)) end;
comment on function trunkline.due_from(float8) is 'When a message is due, of which the library''s statements say seconds from now or, negative, a time in seconds since 1970. Never due before now, on which
the floor rests. Written as an expression, so that it is inlined and no search_path matters.';
