create or replace function trunkline.{do_extending_}()
    returns timestamptz language plpgsql
    set search_path = pg_catalog, pg_temp set jit = off as $f$
-- Returns when the oldest transaction began that has extended leases and is still open: null if
-- there is none, minus infinity if the role may not see that time. Other sessions see the earlier
-- end of such a lease, so leases that ended after this time count. The transaction holds a lock that
-- do_extend_ takes, and the lock of an update: pg_dump holds only the first lock, and a producer only
-- the second. The caller reads the clock before, so an extension that is not found here compared the
-- lease with a later clock.
begin
    return (
        select min(coalesce((select a.xact_start from pg_stat_activity a where a.pid = h.pid), '-infinity'))
        from (select min(l.pid) as pid from pg_locks l
              where l.locktype = 'relation' and l.database = (select d.oid from pg_database d where d.datname = current_database())
                and (l.relation = to_regclass('trunkline.{limit_}') and l.mode = 'AccessShareLock'
                     or l.relation = 'trunkline.{queue_}'::regclass and l.mode = 'RowExclusiveLock')
                and l.granted and l.pid is distinct from pg_backend_pid()
              group by l.virtualtransaction having count(distinct l.mode) = 2) h);
end $f$;
