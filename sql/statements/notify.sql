-- Runs after the commit, in another transaction: a notification inside the transaction would take a database-wide lock at its commit. A listener that
-- announces itself after this statement's check finds the committed rows when it looks.
-- The commit waits for others that notify, however long they take: no caller learns whether the notification was sent.
select pg_catalog.pg_notify(channel, $2) from (select pg_catalog.set_config('lock_timeout', '0', true)) t, pg_catalog.unnest($1::pg_catalog.text[]) channel where trunkline.announced(channel)
