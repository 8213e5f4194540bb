create or replace function trunkline.describe_functions(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set standard_conforming_strings = on as $$
-- Stores the header of each function that all queues share as the function's description, if queue is null. Otherwise
-- drops the functions of parts that the queue no longer has: after a release that changed them, or when the queue's
-- limits are removed. It also removes the descriptions that functions of queues had in earlier releases: they were a
-- sixth of the schema, and each repeats the start of the function's text. Each function that changes is locked until
-- the transaction ends.
#variable_conflict use_variable
declare
    schema oid := (select c.relnamespace from pg_class c where c.oid = 'trunkline.queue'::regclass);
    described record;
begin
    if queue is null then
        for described in
            select p.oid::regprocedure as id, trunkline.header_of(p.prosrc) as header from pg_proc p
            where p.pronamespace = schema and p.proname not like 'do\_%'
        loop
            -- An expression has no header in its body. It describes itself.
            if described.header is distinct from obj_description(described.id, 'pg_proc') and described.header is not null then
                execute format('comment on function %s is %L', described.id, described.header);
            end if;
        end loop;
        return;
    end if;
    perform trunkline.lock_queue(queue);
    for described in
        select p.oid::regprocedure as id, t.is_gone
        from (select n.name, bool_or(n.part = any (trunkline.parts_of(queue))) is not true as is_gone
              from (select t.name, t.part from trunkline.template t
                    union all
                    select r.name, null from unnest(array['dead', 'archived', 'discard', 'prune', 'cancel', 'within', 'shift']) r(name)) n
              group by n.name) t
        join pg_proc p on p.proname = 'do_' || t.name || '_' || queue and p.pronamespace = schema
        where t.is_gone or obj_description(p.oid, 'pg_proc') is not null
    loop
        execute format(case when described.is_gone then 'drop function %s' else 'comment on function %s is null' end, described.id);
    end loop;
end $$;
