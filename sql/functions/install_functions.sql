create or replace function trunkline.install_functions(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set standard_conforming_strings = on set check_function_bodies = off as $$
-- Recreates the functions of one queue, for the parts that the queue has, and grants the rights on
-- them again. Fills and executes all templates at once. Does not replace the queue's view: that
-- would wait for every transaction that has read it, and later readers would wait behind. The
-- caller has locked the queue. If the payload's type was dropped, the payloads are gone, and the
-- functions cannot be created. Then the queue can only be dropped, and other queues are not
-- affected.
declare
    parts text[] := trunkline.parts_of(queue);
    has_view bool := to_regclass(format('trunkline.%I', 'messages_' || queue)) is not null;
begin
    if trunkline.payload_type(queue) is null then
        return;
    end if;
    execute trunkline.fill(
        (select string_agg(t.text, E'\n' order by array_position(parts, t.part), t.name) from trunkline.template t
         where t.part = any (parts) and t.name not in ('tables', 'triggers') and not (t.name = 'messages' and has_view)), queue);
    perform trunkline.apply_rights(queue);
end $$;
