-- One statement handles messages with different delays and errors. `dead` is true for messages whose attempts were used up.
select id, size, attempt, dead from trunkline.{do_retry_}($1, $2, $3, array(select d operator(pg_catalog.*) interval '1 second' from pg_catalog.unnest($4::pg_catalog.float8[]) d), $5)
