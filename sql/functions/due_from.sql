create or replace function trunkline.due_from(seconds float8) returns timestamptz
    language sql volatile parallel unsafe
    return case when seconds >= 0 then trunkline.clock() + seconds * interval '1 second' else greatest(trunkline.clock(), to_timestamp(-seconds)) end;
comment on function trunkline.due_from(float8) is 'Returns when a message is due.
The library''s statements pass seconds from now or, if negative, a time in seconds since 1970. The result is never before now: the floor relies on that.
Written as an expression, so that it is inlined and no search_path matters.';
