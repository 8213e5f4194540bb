-- Returns sessions whose last statement was about this queue, by the application names of their programs. The database has no other record of the
-- programs that use a queue. Statements of the library contain the queue's name in an identifier; calls of the SQL functions contain it in a string
-- literal.
select coalesce(nullif(a.application_name, ''), '(no name)'), coalesce(host(a.client_addr), 'the server'), count(*), max(a.state_change)
from pg_stat_activity a
where a.datname = current_database() and a.backend_type = 'client backend' and a.pid <> pg_backend_pid()
  and a.query ~ ('(_' || regexp_replace($1::text, '([.])', '\\\1', 'g') || '"|''' || regexp_replace($1::text, '([.])', '\\\1', 'g') || ''')')
group by 1, 2 order by 3 desc, 1, 2 limit 50
