-- As cancel_in; the notification goes out with the caller's commit.
select id from trunkline.reschedule($1, $2, pg_catalog.clock_timestamp() operator(pg_catalog.+) ($3::pg_catalog.float8 operator(pg_catalog.*) interval '1 second')) id
