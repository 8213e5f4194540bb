-- The leases end after this duration, counted from now by the server's clock.
select id, size, attempt from trunkline.{do_extend_}($1, $2, $3, $4 operator(pg_catalog.*) interval '1 second')
