-- Reports a role that may not see other roles' sessions. The checks of sessions would find nothing, and would seem to
-- pass.
select 'unchecked', null::text,
       format('the activity of %s sessions of other roles is hidden from role %s', count(*), current_user), null::timestamptz,
       'One of them may hold a transaction open, and no check would find it.',
       format('grant pg_read_all_stats to %I;', current_user)
from pg_stat_activity a
where a.datname = current_database() and a.backend_type is null
having count(*) > 0
