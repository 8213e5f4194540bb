-- The listening session holds the lock, so that other sessions notice its end.
select pg_catalog.pg_advisory_lock($1)
