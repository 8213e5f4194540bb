create or replace function trunkline.wait_for_rewrite(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Waits until no compaction copies a table of the queue, and keeps compactions away until the transaction ends. A
-- compaction replaces the catalog's row of the table, which also contains the rights: a grant that waited for that row
-- would fail ("tuple concurrently updated").
declare
    name text;
begin
    foreach name in array array['queue_', 'unique_', 'line_', 'lane_'] loop
        name := format('trunkline.%I', name || queue);
        if to_regclass(name) is not null then
            execute format('lock table only %s in access share mode', name);
        end if;
    end loop;
end $$;
