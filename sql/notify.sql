-- After the commit, from outside: a notification inside the transaction would take a database-wide lock at its commit.
select pg_notify(channel, $2) from unnest($1::text[]) channel
