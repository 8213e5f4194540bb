create or replace function trunkline.announced(channel text) returns bool
    language sql volatile parallel unsafe
    return case when coalesce(current_setting('trunkline.listens', true), '') <> '' then true
                when pg_try_advisory_lock(1953656427, hashtext(channel)) then not pg_advisory_unlock(1953656427, hashtext(channel))
                else true end;
comment on function trunkline.announced(text) is 'Returns whether a session listens on a channel and relies on notifications.
Such a session holds a shared advisory lock, so a producer that gets the exclusive lock has no listener and sends nothing: NOTIFY would make its commit wait for all other commits that notify.
A producer asks after it has written its rows. A session does not know of its own shared locks, so a session that listens says that in a setting.
Two producers that ask at the same time may both find the lock held; each then sends an unnecessary notification.
Written as an expression, so that it is inlined and no search_path matters.';
