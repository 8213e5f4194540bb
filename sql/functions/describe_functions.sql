create or replace function trunkline.describe_functions(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set standard_conforming_strings = on as $$
-- If queue is null, stores the header of each function that all queues share as the function's
-- description. Otherwise drops functions of parts that the queue no longer has, as after a release
-- that changed the parts, or after the queue's limits were removed. It also removes the descriptions
-- that earlier releases gave to a queue's functions: each repeats the start of the function's text,
-- and together they were a sixth of the schema. Each changed function stays locked until the
-- transaction ends. A queue has about thirty functions.
#variable_conflict use_variable
declare
    schema oid := (select c.relnamespace from pg_class c where c.oid = 'trunkline.queue'::regclass);
    parts text[];
    found record;
begin
    if queue is null then
        for found in
            select p.oid::regprocedure as id, trunkline.header_of(p.prosrc) as header from pg_proc p
            where p.pronamespace = schema and p.proname not like 'do\_%'
        loop
            -- A function whose body is an expression has no header there. It sets its own description.
            if found.header is distinct from obj_description(found.id, 'pg_proc') and found.header is not null then
                execute format('comment on function %s is %L', found.id, found.header);
            end if;
        end loop;
        return;
    end if;
    perform trunkline.lock_queue(queue);
    parts := trunkline.parts_of(queue); -- computed once, not for each template
    for found in
        select p.oid::regprocedure as id, n.is_left
        from (select t.name, not bool_or(t.part = any (parts)) as is_left from trunkline.template t group by t.name
              union all select 'within', true union all select 'enqueue', true) n -- left from earlier versions
        join pg_proc p on p.proname = 'do_' || n.name || '_' || queue and p.pronamespace = schema
        where n.is_left or obj_description(p.oid, 'pg_proc') is not null
    loop
        execute format(case when found.is_left then 'drop function %s' else 'comment on function %s is null' end, found.id);
    end loop;
end $$;
