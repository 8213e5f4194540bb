create or replace function trunkline.install_queue(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set standard_conforming_strings = on set check_function_bodies = off as $$
-- Recreates the functions and the view of one queue, those of its parts and no others, and renews the rights on it. All
-- texts are filled and executed at once. If the payload's type was dropped, and so the payloads, nothing can be created:
-- then the queue can only be dropped, and other queues go on.
declare
    parts text[] := trunkline.parts_of(queue);
begin
    perform trunkline.lock_queue(queue);
    if trunkline.payload_type(queue) is null then
        return;
    end if;
    execute trunkline.fill(
        (select string_agg(t.text, E'\n' order by array_position(parts, t.part), t.name) from trunkline.template t
         where t.part = any (parts) and t.name not in ('tables', 'triggers')), queue);
    perform trunkline.apply_rights(queue);
end $$;
