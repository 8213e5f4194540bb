-- Returns the programs that have sessions in this database, by their application names.
select coalesce(nullif(a.application_name, ''), '(no name)'), count(*)
from pg_stat_activity a
where a.datname = current_database() and a.backend_type = 'client backend' and a.pid <> pg_backend_pid()
group by 1 order by 2 desc, 1 limit 50
