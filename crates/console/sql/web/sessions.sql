-- Sessions whose last statement was about this queue, by the name that their program gives itself: what the database knows of who works on it. The statements of
-- the library and of the SQL functions have the queue's name in them, the latter in quotes of a text.
select coalesce(nullif(a.application_name, ''), '(no name)'), coalesce(host(a.client_addr), 'this machine'), count(*), max(a.state_change)
from pg_stat_activity a
where a.datname = current_database() and a.backend_type = 'client backend' and a.pid <> pg_backend_pid()
  and a.query ~ ('(_' || regexp_replace($1::text, '([.])', '\\\1', 'g') || '"|''' || regexp_replace($1::text, '([.])', '\\\1', 'g') || ''')')
group by 1, 2 order by 3 desc, 1, 2 limit 50
