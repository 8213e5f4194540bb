-- Deletes dead letters for good; returns how many.
create or replace function trunkline.discard(queue text, ids bigint[]) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('delete from trunkline.%I d where d.id = any ($1)', 'dead_' || queue) using trunkline.check_ids(ids, 'discard');
    get diagnostics count = row_count;
    return count;
end $$;
