create or replace function trunkline.describe_functions() returns void
    language plpgsql set search_path = pg_catalog, pg_temp set standard_conforming_strings = on as $$
-- Makes the header of each function that all queues share its description. A queue's own functions are described where
-- they are installed.
declare
    described record;
begin
    for described in
        select p.oid::regprocedure as id, trunkline.header_of(p.prosrc) as header from pg_proc p
        where p.pronamespace = (select c.relnamespace from pg_class c where c.oid = 'trunkline.queue'::regclass)
          and p.proname not like 'do\_%'
    loop
        if described.header is not null then
            execute format('comment on function %s is %L', described.id, described.header);
        end if;
    end loop;
end $$;
