create or replace function trunkline.discard_all(queue text) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Deletes all dead letters of a queue permanently; returns how many.
--
-- Example:
--     select trunkline.discard_all('emails');
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('delete from trunkline.%I', 'dead_' || queue);
    get diagnostics count = row_count;
    return count;
end $$;
