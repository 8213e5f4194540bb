-- Undoes announce.sql.
select pg_catalog.pg_advisory_unlock_shared(1953656427, pg_catalog.hashtext(channel)) from pg_catalog.unnest($1::pg_catalog.text[]) channel
