-- Announces this session: from now on, producers notify it on these channels. See trunkline.announced.
select pg_catalog.pg_advisory_lock_shared(1953656427, pg_catalog.hashtext(channel)) from pg_catalog.unnest($1::pg_catalog.text[]) channel
