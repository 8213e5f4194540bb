-- A role that may not see other sessions would find none, and its report would look healthy.
select 'unchecked', null::text,
       format('%s sessions of other roles hide what they do from role %s', count(*), current_user), null::timestamptz,
       'One of them may hold a transaction open, and nothing here would tell.',
       format('grant pg_read_all_stats to %I;', current_user)
from pg_stat_activity a
where a.datname = current_database() and a.backend_type is null
having count(*) > 0
