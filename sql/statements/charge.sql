-- After a rollback there is no lease to end: the messages are in the queue with their earlier
-- attempt number. Without a delay, they become dead letters.
select id, size, attempt, dead from trunkline.{do_charge_}($1, $2, $3, array(select d operator(pg_catalog.*) interval '1 second' from pg_catalog.unnest($4::pg_catalog.float8[]) d), $5)
