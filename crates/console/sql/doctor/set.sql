-- Applies settings, given as an array of name=value, for one transaction.
select pg_catalog.count(pg_catalog.set_config(split_part(s.setting, '=', 1), substr(s.setting, strpos(s.setting, '=') + 1), true))
from unnest($1::text[]) s (setting)
