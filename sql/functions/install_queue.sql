create or replace function trunkline.install_queue(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set standard_conforming_strings = on as $$
-- Recreates the view and the functions of one queue (see trunkline.install_functions).
begin
    perform trunkline.lock_queue(queue);
    if trunkline.payload_type(queue) is not null then
        execute trunkline.fill(
            (select t.text from trunkline.template t where t.part = any (trunkline.parts_of(queue)) and t.name = 'messages'), queue);
    end if;
    perform trunkline.install_functions(queue);
end $$;
