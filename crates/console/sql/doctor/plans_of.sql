-- Returns the settings with which the statements of these functions are planned, by function. In each schema, a function of a queue has one name.
select p.proname::text, array(select c.setting from unnest(p.proconfig) c (setting) where c.setting !~ '^search_path=' order by c.setting)
from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where n.nspname = $1 and p.proname = any ($2)
