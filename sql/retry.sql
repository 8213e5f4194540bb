-- One statement for messages with delays and errors of their own.
select id, size, attempt from trunkline.{do_retry_}($1, $2, $3, array(select d * interval '1 second' from unnest($4::float8[]) d), $5)
