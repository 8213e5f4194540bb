create or replace function trunkline.{do_extending_}()
    returns timestamptz language plpgsql set search_path = pg_catalog, pg_temp as $f$
-- Returns when the oldest transaction began that has extended leases and has not ended; null if there is none, and minus
-- infinity if the role may not see the time. Other sessions still see such a lease's earlier end, so leases that ended
-- after this time count. The transaction holds a lock that do_extend_ takes, and the lock of an update. pg_dump holds
-- the first lock, too, and producers hold the second. The caller has read the clock before: an extension that is not
-- found here looked at the clock later. To read the locks of all sessions takes 0.2 ms and more, so an advisory lock
-- says first whether there may be one.
begin
    if pg_try_advisory_lock(1953656428, hashtext({literal})) then
        perform pg_advisory_unlock(1953656428, hashtext({literal}));
        return null;
    end if;
    return (
        select min(coalesce(a.xact_start, '-infinity'))
        from pg_locks l
        join pg_locks w on w.virtualtransaction = l.virtualtransaction and w.locktype = 'relation' and w.database = l.database
                       and w.relation = 'trunkline.{queue_}'::regclass and w.mode = 'RowExclusiveLock' and w.granted
        left join pg_stat_activity a on a.pid = l.pid
        where l.locktype = 'relation' and l.relation = to_regclass('trunkline.{limit_}') and l.mode = 'AccessShareLock' and l.granted
          and l.database = (select d.oid from pg_database d where d.datname = current_database()) and l.pid is distinct from pg_backend_pid());
end $f$;
