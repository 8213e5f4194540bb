-- Returns the settings of a queue's function, under which its statements are planned.
select split_part(c.setting, '=', 1), substr(c.setting, strpos(c.setting, '=') + 1)
from pg_proc p join pg_namespace n on n.oid = p.pronamespace, unnest(p.proconfig) c (setting)
where n.nspname = $1 and p.proname = $2 and c.setting !~ '^search_path='
