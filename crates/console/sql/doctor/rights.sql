-- Finds queues that the doctor's role may not read, so that a missing check does not look like a passed one.
select 'unchecked', q.name, format('role %s may not read table %I', current_user, 'queue_' || q.name), null::timestamptz,
       'The doctor could not check whether this queue is consumed.',
       format('select trunkline.grant_rights(%L, ''operator'', %L);', quote_ident(current_user), q.name)
from trunkline.queue q
where not has_table_privilege(format('trunkline.%I', 'queue_' || q.name), 'select')
order by q.name
