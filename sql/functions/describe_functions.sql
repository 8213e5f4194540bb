create or replace function trunkline.describe_functions(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set standard_conforming_strings = on as $$
-- Stores the header of each function of a queue as the function's description; if queue is null, the headers of the
-- functions that all queues share. Each function whose description changes is locked until the transaction ends: a
-- queue has about fifty functions.
#variable_conflict use_variable
declare
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
        names := array(select 'do_' || t.name || '_' || queue from trunkline.template t where t.kind = 'function');
    end if;
    for described in
        select p.oid::regprocedure as id, trunkline.header_of(p.prosrc) as header, obj_description(p.oid, 'pg_proc') as known
        from pg_proc p
        where p.proname = any (names)
          and p.pronamespace = (select c.relnamespace from pg_class c where c.oid = 'trunkline.queue'::regclass)
    loop
        -- An expression has no header; its file describes it.
        if described.header is not null and described.header is distinct from described.known then
            execute format('comment on function %s is %L', described.id, described.header);
        end if;
    end loop;
end $$;
