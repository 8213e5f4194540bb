-- Returns the actions that this role may not perform, according to its rights on a queue, or on no particular queue. A pause installs the queue's
-- functions again, which needs the owner's rights. A separate query checks whether actions can be recorded.
select array_remove(array[
    case when not has_table_privilege('trunkline.schedule', 'update') then 'pause-schedule' end,
    case when not has_table_privilege('trunkline.schedule', 'update') then 'resume-schedule' end,
    case when not has_table_privilege('trunkline.schedule', 'update') then 'fire-schedule' end,
    case when not pg_has_role(q.relowner, 'usage') then 'pause' end,
    case when not pg_has_role(q.relowner, 'usage') then 'resume' end,
    case when not has_table_privilege(q.oid, 'delete') then 'purge' end,
    case when not has_table_privilege(q.oid, 'delete') then 'cancel' end,
    case when not has_table_privilege(q.oid, 'update') then 'reschedule' end,
    case when not (has_column_privilege(q.oid, 'payload', 'insert') and has_sequence_privilege(i.oid, 'usage')) then 'enqueue' end,
    case when not (has_table_privilege(d.oid, 'delete') and has_table_privilege(q.oid, 'insert')) then 'replay' end,
    case when not has_table_privilege(d.oid, 'delete') then 'discard' end,
    case when not (has_table_privilege(d.oid, 'delete') and has_column_privilege(q.oid, 'payload', 'insert') and has_sequence_privilege(i.oid, 'usage')) then 'edit' end],
    null)
from (select 'trunkline'::regnamespace as oid) n
left join pg_class q on q.relnamespace = n.oid and q.relname = 'queue_' || $1::text
left join pg_class d on d.relnamespace = n.oid and d.relname = 'dead_' || $1::text
left join pg_class i on i.relnamespace = n.oid and i.relname = 'id_' || $1::text
