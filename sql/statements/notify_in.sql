-- Runs in the caller's transaction, if its commit makes room for other leases of a queue with a limit.
select pg_catalog.pg_notify($1, '')::pg_catalog.text where trunkline.announced($1)
