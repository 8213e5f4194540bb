-- Finds triggers of Trunkline that are disabled: the tables accept rows that no consumer can read, and unique keys are not freed.
select 'wrong', null::text, format('trigger %I of table %s is disabled', t.tgname, t.tgrelid::regclass), null::timestamptz,
       'The trigger does not run, so the table accepts wrong rows, or unique keys are not freed.',
       format('alter table %s enable trigger %I;', t.tgrelid::regclass, t.tgname)
from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_proc p on p.oid = t.tgfoid
where not t.tgisinternal and t.tgenabled = 'D' and p.pronamespace = c.relnamespace
  and c.relnamespace = (select s.relnamespace from pg_class s where s.oid = 'trunkline.queue'::regclass)
order by t.tgrelid::regclass::text, t.tgname
