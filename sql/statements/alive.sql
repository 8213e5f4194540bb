-- The listening session holds the lock, so that other sessions notice when it ends.
select pg_catalog.pg_advisory_lock($1)
