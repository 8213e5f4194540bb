create or replace function trunkline.set_vacuum(queue text) returns bool
    language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '3s' as $$
-- Lets autovacuum work without pauses on the tables of a queue whose rows come and go with
-- messages. Migrations call this function for queues of older releases. A value that an operator
-- has set stays. Returns false if a table is locked for longer than three seconds; a running
-- autovacuum gives way after one second (deadlock_timeout).
declare
    t record;
begin
    for t in
        select c.oid::regclass as id, o.prefix
        from (values ('queue_', ''), ('queue_', 'toast.'), ('unique_', '')) o(name, prefix)
        join pg_class c on c.oid = to_regclass(format('trunkline.%I', o.name || queue))
        left join pg_class x on x.oid = c.reltoastrelid
        where not exists (
            select from pg_options_to_table(case o.prefix when '' then c.reloptions else x.reloptions end) p
            where p.option_name = 'autovacuum_vacuum_cost_delay')
    loop
        execute format('alter table %s set (%sautovacuum_vacuum_cost_delay = 0)', t.id, t.prefix);
    end loop;
    return true;
exception when lock_not_available then
    return false;
end $$;
