-- Replays every dead letter of a queue; returns how many. See trunkline.replay.
create or replace function trunkline.replay_all(queue text) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    ids bigint[];
begin
    perform trunkline.check_queue(queue);
    execute format('select coalesce(array_agg(d.id), ''{}'') from trunkline.%I d', 'dead_' || queue) into ids;
    return trunkline.replay(queue, ids);
end $$;
