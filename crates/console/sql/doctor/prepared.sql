-- Prepared transactions outlive their sessions, and restarts of the server.
select 'wrong', null::text,
       format('prepared transaction %L of role %s has waited for its end for %s', p.gid, p.owner, date_trunc('second', now() - p.prepared)),
       p.prepared,
       'It holds its locks, and no row that was deleted since then can be cleaned away, until it is ended. A restart of the server does not.',
       format('rollback prepared %L; -- or commit prepared, if that is what its coordinator decided', p.gid)
from pg_prepared_xacts p
where p.database = current_database() and p.prepared < now() - interval '{patience}'
order by p.prepared
