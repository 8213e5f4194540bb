-- Reports what the doctor's role may not do, so that skipped checks do not look like a clean bill of health.
select 'unchecked', q.name, format('role %s may not read table %I', current_user, 'queue_' || q.name), null::timestamptz,
       'Whether anybody consumes this queue was not looked at.',
       format('select trunkline.grant_rights(%L, ''operator'', %L);', quote_ident(current_user), q.name)
from trunkline.queue q
where not has_table_privilege(format('trunkline.%I', 'queue_' || q.name), 'select')
order by q.name
