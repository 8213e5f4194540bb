-- Finds triggers of Trunkline that are disabled or missing: the tables accept rows that no consumer can read, and unique keys are not freed.
select 'wrong', null::text, format('trigger %I of table %s is disabled', t.tgname, t.tgrelid::regclass), null::timestamptz,
       'The trigger does not run, so the table accepts wrong rows, or unique keys are not freed.',
       format('alter table %s enable trigger %I;', t.tgrelid::regclass, t.tgname)
from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_proc p on p.oid = t.tgfoid
where not t.tgisinternal and t.tgenabled = 'D' and p.pronamespace = c.relnamespace
  and c.relnamespace = (select s.relnamespace from pg_class s where s.oid = 'trunkline.queue'::regclass)
union all
select 'wrong', q.name, format('trigger %I of table %I is missing', e.name, c.relname), null,
       'The table accepts wrong rows, or unique keys are not freed.',
       format('create trigger %I ' || e.what || ';', e.name, format('trunkline.%I', c.relname))
from trunkline.queue q cross join lateral (
    select 'queue_' as place, 'refuse_row' as name, 'before insert on %s for each row execute function trunkline.refuse_row()' as what
    union all
    select 'dead_', 'keep_letter', 'before insert or update of id on %s for each row execute function trunkline.keep_letter()'
    union all
    select 'archive_', 'keep_letter', 'before insert on %s for each row when (new.id < 0) execute function trunkline.keep_letter()'
    union all
    select 'queue_', 'keep_place', format('before insert on %%s for each row execute function trunkline.keep_place(%s, %s)', q.first_lane, q.lanes) where q.lanes > 0
    union all
    select 'queue_', 'free_keys',
           format('after delete on %%s referencing old table as gone for each statement execute function trunkline.%I()', 'do_free_' || q.name) where q.uniqueness
    union all
    select 'queue_', 'free_all_keys', format('after truncate on %%s for each statement execute function trunkline.%I()', 'do_free_' || q.name) where q.uniqueness) e
join pg_class c on c.relnamespace = 'trunkline'::regnamespace and c.relkind = 'r' and c.relname = e.place || q.name
where not exists (select from pg_trigger t where t.tgrelid = c.oid and t.tgname = e.name)
order by 3
