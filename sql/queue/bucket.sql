create or replace function trunkline.{do_bucket_}()
    returns bool language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $f$
-- Locks the queue's limits until the commit, and says whether that was possible. Another dequeue has them for the time of a commit; a
-- take in a long transaction, or one that died, has them for longer: then nothing is allowed, and no session waits behind. A table for this alone, without a row,
-- because the lock of a row is a write: the transaction would get an id, which holds down every floor, and keep it where a look finds nothing and is undone.
-- An advisory lock could be held by any role; this one takes a right to the queue.
begin
    lock table trunkline.{limit_} in exclusive mode;
    return true;
exception when lock_not_available then
    return false;
end $f$;
