-- Functions that every queue had are replaced by functions that all queues share. Programs of 0.1.0 call seven of them: in a
-- schema that 0.1.0 created, sql/queue/older replaces them.
do $$
declare
    f record;
begin
    for f in
        select p.oid::regprocedure as id from pg_proc p
        where p.pronamespace = (select c.relnamespace from pg_class c where c.oid = 'trunkline.queue'::regclass)
          and p.proname = any (array(
              select format('do_%s_%s', n.name, q.name) from trunkline.queue q,
                     unnest('{archived,dead,discard,gone,peek,prune,replay,shift,within}'::text[]) n(name)))
    loop
        execute format('drop function %s', f.id);
    end loop;
end $$;
