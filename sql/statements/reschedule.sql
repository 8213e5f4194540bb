-- Due that long from now by the server's clock. What is busy is not done.
select id, done from trunkline.{do_reschedule_}($1, pg_catalog.clock_timestamp() operator(pg_catalog.+) ($2 operator(pg_catalog.*) interval '1 second'))
