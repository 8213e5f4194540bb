-- Makes dead letters due again under the same ids, with their attempts forgiven; returns how many. Attempt numbers go on
-- from where they were, so that a late worker's lease stays lost.
create or replace function trunkline.replay(queue text, ids bigint[]) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    execute format($q$
        with back as (delete from trunkline.%I d where d.id = any ($1) returning *)
        insert into trunkline.%I (id, enqueued_at, attempt, released, size, error, payload, metadata)
        select b.id, b.enqueued_at, b.attempt + b.released, b.attempt + b.released, 1, '', array[b.payload],
               case when b.metadata is not null then array[b.metadata] end
        from back b order by b.id $q$, 'dead_' || queue, 'queue_' || queue) using trunkline.check_ids(ids, 'replay');
    get diagnostics count = row_count;
    perform pg_notify('trunkline.' || queue, '');
    return count;
end $$;
