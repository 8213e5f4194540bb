-- Makes messages due in the given number of seconds by the server's clock or, if the number is
-- negative, at a time in seconds since 1970. Busy messages are returned with done = false.
select id, done from trunkline.{do_reschedule_}($1, case
    when $2::pg_catalog.float8 operator(pg_catalog.>=) 0 then pg_catalog.clock_timestamp() operator(pg_catalog.+) ($2::pg_catalog.float8 operator(pg_catalog.*) interval '1 second')
    else pg_catalog.to_timestamp(operator(pg_catalog.-) $2::pg_catalog.float8) end)
