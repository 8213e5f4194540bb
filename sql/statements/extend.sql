-- The leases end after this duration, counted from now by the server's clock. The statement fails if another transaction keeps a message locked for half a
-- second: other leases would wait for that transaction, and be lost. The setting ends with the statement, which has its own transaction.
select e.id, e.size, e.attempt
from (select pg_catalog.set_config('lock_timeout', '500ms', true) as patience) t,
     lateral trunkline.{do_extend_}($1, $2, $3, case when t.patience is not null then $4 operator(pg_catalog.*) interval '1 second' end) e
