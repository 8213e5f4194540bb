-- Held by the listening session, so that its end is seen.
select pg_catalog.pg_advisory_lock($1)
