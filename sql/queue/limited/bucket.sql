create or replace function trunkline.{do_bucket_}()
    returns bool language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $f$
-- Locks the queue's limits until the commit, and returns whether that was possible. Another dequeue
-- holds the lock for the duration of a commit. A take in a long transaction, or in a transaction
-- whose client died, holds the lock for longer. Then nothing is allowed, and no session waits for
-- the lock. The lock is on a table that exists for this purpose and has no rows. A row lock is a
-- write: the transaction would get an id, which holds back every floor, and would keep the id even
-- if the call finds nothing and is undone. Any role could hold an advisory lock, but this lock
-- needs a right to the queue.
begin
    lock table trunkline.{limit_} in exclusive mode;
    return true;
exception when lock_not_available or undefined_table then
    return false; -- the limits may have been removed in the meantime; then the next dequeue finds no limits
end $f$;
