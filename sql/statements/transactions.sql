-- Returns the transactions of this database that have an id, including prepared ones. Each of them
-- holds a lock on its id until it has ended.
select l.transactionid::pg_catalog.text
from pg_catalog.pg_locks l
where l.locktype operator(pg_catalog.=) 'transactionid' and l.mode operator(pg_catalog.=) 'ExclusiveLock' and l.granted
  and (exists (select from pg_catalog.pg_stat_activity a join pg_catalog.pg_database d on d.oid operator(pg_catalog.=) a.datid
               where a.pid operator(pg_catalog.=) l.pid and d.datname operator(pg_catalog.=) pg_catalog.current_database())
       or exists (select from pg_catalog.pg_prepared_xacts p
                  where p.transaction operator(pg_catalog.=) l.transactionid and p.database operator(pg_catalog.=) pg_catalog.current_database()))
