-- Returns the sessions whose last statement was about this queue, by their application names: this is what the database knows about the queue's users. The
-- library's statements and the SQL functions contain the queue's name; in calls of the functions it is a quoted literal.
select coalesce(nullif(a.application_name, ''), '(no name)'), coalesce(host(a.client_addr), 'this machine'), count(*), max(a.state_change)
from pg_stat_activity a
where a.datname = current_database() and a.backend_type = 'client backend' and a.pid <> pg_backend_pid()
  and a.query ~ ('(_' || regexp_replace($1::text, '([.])', '\\\1', 'g') || '"|''' || regexp_replace($1::text, '([.])', '\\\1', 'g') || ''')')
group by 1, 2 order by 3 desc, 1, 2 limit 50
