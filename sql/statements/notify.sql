-- Runs after the commit, in another transaction: a notification inside the transaction would take a database-wide lock at its commit. A listener that
-- announces itself after this statement's check finds the committed rows when it looks.
select pg_catalog.pg_notify(channel, $2) from pg_catalog.unnest($1::pg_catalog.text[]) channel where trunkline.announced(channel)
