-- Runs after the commit, in another transaction: a notification inside the transaction would take a database-wide lock at its commit.
select pg_catalog.pg_notify(channel, $2) from pg_catalog.unnest($1::pg_catalog.text[]) channel
