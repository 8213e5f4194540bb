-- Like reschedule, in the caller's transaction; the notification is sent at its commit.
select id from trunkline.reschedule($1, $2, case
    when $3::pg_catalog.float8 operator(pg_catalog.>=) 0
    then pg_catalog.clock_timestamp() operator(pg_catalog.+) ($3::pg_catalog.float8 operator(pg_catalog.*) interval '1 second')
    else pg_catalog.to_timestamp(operator(pg_catalog.-) $3::pg_catalog.float8) end) id
