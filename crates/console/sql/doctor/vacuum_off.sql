-- Finds tables for which autovacuum is turned off, before that has visible effects. A table's TOAST table, which holds its large payloads, has options
-- of its own.
select 'wrong', substr(c.relname, strpos(c.relname, '_') + 1),
       format('autovacuum is turned off for %stable %I', case when o.prefix <> '' then 'the TOAST table of ' end, c.relname), null::timestamptz,
       'A row of a queue lives for milliseconds. Without autovacuum, the table only grows.',
       format('alter table trunkline.%I reset (%sautovacuum_enabled);', c.relname, o.prefix)
from pg_class c left join pg_class t on t.oid = c.reltoastrelid, lateral (
    select '' as prefix from pg_options_to_table(c.reloptions) o where o.option_name = 'autovacuum_enabled' and not o.option_value::bool
    union all
    select 'toast.' from pg_options_to_table(t.reloptions) o where o.option_name = 'autovacuum_enabled' and not o.option_value::bool) o
where c.relnamespace = 'trunkline'::regnamespace and c.relkind = 'r'
order by c.relname, o.prefix
