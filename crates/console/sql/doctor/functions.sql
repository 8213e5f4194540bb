-- Finds functions and views of a queue that were dropped. The templates of the queue's parts list what a queue has. A queue whose payloads are lost has
-- no functions: see the check `payloads`.
with known as materialized (
    select q.name, trunkline.parts_of(q.name) as parts
    from trunkline.queue q
    where exists (select from pg_attribute a
                  where a.attrelid = to_regclass(format('trunkline.%I', 'queue_' || q.name)) and a.attname = 'payload' and not a.attisdropped)
), lost as (
    select k.name, 'do_' || t.name || '_' || k.name as object
    from known k join trunkline.template t on t.part = any (k.parts)
    where t.name not in ('tables', 'triggers', 'messages')
      and not exists (select from pg_proc p
                      where p.proname = ('do_' || t.name || '_' || k.name)::name and p.pronamespace = 'trunkline'::regnamespace)
    union all
    select k.name, 'messages_' || k.name from known k where to_regclass(format('trunkline.%I', 'messages_' || k.name)) is null
)
select 'wrong', l.name,
       format('of its functions and views, %s %s missing: %s', count(*), case when count(*) = 1 then 'is' else 'are' end,
              left(string_agg(l.object, ', ' order by l.object), 300)),
       null::timestamptz,
       'Calls that need them fail, some of them as if there were no such queue.',
       format('select trunkline.install_queue(%L); -- as the owner of the schema', l.name)
from lost l
group by l.name
order by l.name
