-- After a rollback there is no lease to end: the messages are where they were, under the attempt that they had. Without a delay they are dead.
select id, size, attempt, dead from trunkline.{do_charge_}($1, $2, $3, array(select d operator(pg_catalog.*) interval '1 second' from pg_catalog.unnest($4::pg_catalog.float8[]) d), $5)
