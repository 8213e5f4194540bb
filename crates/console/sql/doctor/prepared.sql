-- Finds prepared transactions, which outlive their sessions and restarts of the server.
select 'wrong', null::text,
       format('prepared transaction %L of role %s has been open for %s', p.gid, p.owner, date_trunc('second', now() - p.prepared)),
       p.prepared,
       'Until it is committed or rolled back, it holds its locks, and vacuum cannot remove rows deleted since then. A restart does not end it.',
       format('rollback prepared %L; -- or commit prepared, if its coordinator decided to commit', p.gid)
from pg_prepared_xacts p
where p.database = current_database() and p.prepared < now() - interval '{patience}'
order by p.prepared
