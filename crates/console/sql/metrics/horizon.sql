-- Returns the oldest transactions that hold back the horizon: rows deleted since then stay, in every table of the database. A vacuum holds nothing
-- back. Slots and standbys report no time. Transactions of other databases hold back only the shared tables, which are not counted here.
select 'session', greatest(0, coalesce(extract(epoch from max(clock_timestamp() - a.xact_start)), 0))::float8,
       coalesce(max(greatest(age(a.backend_xmin), age(a.backend_xid))), 0)::bigint
from pg_stat_activity a
where a.datname = current_database() and a.pid <> pg_backend_pid() and (a.backend_xmin is not null or a.backend_xid is not null)
  and not exists (select from pg_stat_progress_vacuum v where v.pid = a.pid)
union all
select 'prepared', coalesce(extract(epoch from max(clock_timestamp() - p.prepared)), 0)::float8, coalesce(max(age(p.transaction)), 0)::bigint
from pg_prepared_xacts p where p.database = current_database()
union all
select 'slot', null, coalesce(max(age(s.xmin)), 0)::bigint
from pg_replication_slots s where s.database is null or s.database = current_database()
union all
select 'standby', null, coalesce(max(age(r.backend_xmin)), 0)::bigint from pg_stat_replication r
