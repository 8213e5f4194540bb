create or replace function trunkline.install_queue(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set standard_conforming_strings = on set check_function_bodies = off as $$
-- Recreates the functions and the view of one queue, and renews the rights on it.
declare
    template text;
begin
    perform trunkline.lock_queue(queue);
    -- Only queues with unique keys get the templates that name the table of unique keys.
    for template in
        select t.text from trunkline.template t, trunkline.queue q
        where t.kind <> 'tables' and q.name = queue and (q.uniqueness or t.text not like '%{unique\_}%')
        order by t.kind, t.name
    loop
        execute trunkline.fill(template, queue);
    end loop;
    perform trunkline.apply_rights(queue);
end $$;
