create or replace function trunkline.describe_functions(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set standard_conforming_strings = on as $$
-- Stores the header of each function of a queue as the function's description or, if queue is null,
-- of each function that all queues share. Drops functions of parts that the queue no longer has, as
-- after a release that changed the parts, or after the queue's limits were removed. Each changed
-- function stays locked until the transaction ends. A queue has about thirty functions.
#variable_conflict use_variable
declare
    parts text[] := trunkline.parts_of(queue); -- computed once, not for each template
    names text[];
    described record;
begin
    if queue is null then
        names := array(
            select p.proname from pg_proc p
            where p.pronamespace = (select c.relnamespace from pg_class c where c.oid = 'trunkline.queue'::regclass)
              and p.proname not like 'do\_%');
    else
        perform trunkline.lock_queue(queue);
        for described in
            select p.oid::regprocedure as id from pg_proc p
            where p.pronamespace = (select c.relnamespace from pg_class c where c.oid = 'trunkline.queue'::regclass)
              and p.proname = any (array(
                  select 'do_' || t.name || '_' || queue from trunkline.template t
                  group by t.name having not bool_or(t.part = any (parts))
                  union all select 'do_within_' || queue)) -- a function that step 26 replaced
        loop
            execute format('drop function %s', described.id);
        end loop;
        names := array(select 'do_' || t.name || '_' || queue from trunkline.template t where t.part = any (parts));
    end if;
    for described in
        select p.oid::regprocedure as id, obj_description(p.oid, 'pg_proc') as known, coalesce(trunkline.header_of(p.prosrc), (
                   select trunkline.header_of(t.text) from trunkline.template t
                   where 'do_' || t.name || '_' || queue = p.proname and t.part = any (parts))) as header
        from pg_proc p
        where p.proname = any (names)
          and p.pronamespace = (select c.relnamespace from pg_class c where c.oid = 'trunkline.queue'::regclass)
    loop
        -- A function whose body is an expression has no comment in its source. A queue's function has its header in its
        -- template, and a shared function sets its own description.
        if described.header is not null and described.header is distinct from described.known then
            execute format('comment on function %s is %L', described.id, described.header);
        end if;
    end loop;
end $$;
