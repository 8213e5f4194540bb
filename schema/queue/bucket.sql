-- Locks the queue's bucket until the commit, and says whether that was possible. Somebody else has it for the time of a commit; whoever
-- takes in a long transaction, or died in one, has it for longer: then nothing is allowed, and nobody waits behind. An advisory lock, because
-- that of a row is a write: the transaction would get an id, which holds down every floor, and keep it where a look finds nothing and is undone.
create or replace function trunkline.{do_bucket_}()
    returns bool language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $f$
begin
    perform pg_advisory_xact_lock(hashtextextended('trunkline.bucket ' || {literal}, 0));
    return true;
exception when lock_not_available then
    return false;
end $f$;
