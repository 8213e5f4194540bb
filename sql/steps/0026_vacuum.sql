-- Vacuum does not pause on the tables whose rows come and go with messages. What an operator has set stays.
do $$
declare
    t record;
begin
    for t in
        select c.oid::regclass as id, s.settings
        from trunkline.queue q, (values
            ('queue_', 'autovacuum_vacuum_cost_delay = 0, toast.autovacuum_vacuum_cost_delay = 0'),
            ('unique_', 'autovacuum_vacuum_cost_delay = 0')) s(prefix, settings), pg_class c
        where c.oid = to_regclass(format('trunkline.%I', s.prefix || q.name))
          and not exists (select from pg_options_to_table(c.reloptions) o where o.option_name = 'autovacuum_vacuum_cost_delay')
    loop
        execute format('alter table %s set (%s)', t.id, t.settings);
    end loop;
end $$;
