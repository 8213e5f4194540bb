-- Finds tables for which autovacuum is turned off, before that has visible effects.
select 'wrong', substr(c.relname, strpos(c.relname, '_') + 1), format('autovacuum is turned off for table %I', c.relname), null::timestamptz,
       'A row of a queue lives for milliseconds. Without autovacuum, the table only grows.',
       format('alter table trunkline.%I reset (autovacuum_enabled);', c.relname)
from pg_class c
where c.relnamespace = 'trunkline'::regnamespace and c.relkind = 'r'
  and exists (select from pg_options_to_table(c.reloptions) o where o.option_name = 'autovacuum_enabled' and not o.option_value::bool)
order by c.relname
