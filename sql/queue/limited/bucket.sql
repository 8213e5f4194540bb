create or replace function trunkline.{do_bucket_}()
    returns bool language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $f$
-- Locks the queue's limits until the commit, and returns whether that was possible. Another dequeue holds the lock for the duration of a commit; a
-- take in a long transaction, or in one whose client died, holds it for longer: then nothing is allowed, and no session waits for the lock. The lock
-- is on a table that exists for this purpose and has no rows. A row lock is a write: the transaction would get an id, which holds back every floor,
-- and would keep the id even if the look finds nothing and is undone. An advisory lock could be held by any role; this lock needs a right to the
-- queue.
begin
    lock table trunkline.{limit_} in exclusive mode;
    return true;
exception when lock_not_available or undefined_table then
    return false; -- the limits may just have been removed: the next dequeue finds none
end $f$;
