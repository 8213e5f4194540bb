-- Finds queues that the doctor's role may not read, so that a missing check does not look like a passed one; and tables and views that belong to another
-- role than the schema, as after a restore. Of these, the owner of the schema cannot grant rights.
with of_queue as (
    select q.name, c.oid, c.relname, c.relkind, c.relowner, s.relowner as owner
    from trunkline.queue q join pg_class s on s.oid = 'trunkline.queue'::regclass
    join pg_class c on c.relnamespace = s.relnamespace and c.relkind in ('r', 'v')
        and c.relname ~ '^(queue|dead|archive|unique|lane|line|limit|messages)_' and substr(c.relname, strpos(c.relname, '_') + 1) = q.name
)
select 'wrong', o.name,
       format('%s %s to role %s, and the schema to %I', string_agg(format('%I', o.relname), ', ' order by o.relname),
              case when count(*) = 1 then 'belongs' else 'belong' end, string_agg(distinct quote_ident(pg_get_userbyid(o.relowner)), ', '),
              pg_get_userbyid(o.owner)),
       null::timestamptz,
       'The owner of the schema can neither use them nor grant rights to them, and the next migration fails. A restore by another role leaves them like this.',
       string_agg(format('alter %s trunkline.%I owner to %I;', case o.relkind when 'v' then 'view' else 'table' end, o.relname, pg_get_userbyid(o.owner)),
                  ' ' order by o.relname) || ' -- as a superuser'
from of_queue o
where o.relowner <> o.owner
group by o.name, o.owner
union all
select 'unchecked', o.name, format('role %s may not read table %I', current_user, o.relname), null,
       'The doctor could not check whether this queue is consumed.',
       format('select trunkline.grant_rights(%L, ''operator'', %L);', quote_ident(current_user), o.name)
from of_queue o
where o.relname = 'queue_' || o.name and o.relowner = o.owner and not has_table_privilege(o.oid, 'select')
order by 1 desc, 2
