create or replace function trunkline.replay_all(queue text) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Replays every dead letter of a queue; returns how many. See trunkline.replay.
--
-- Example:
--     select trunkline.replay_all('emails');
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    select count(*) into count from trunkline.replay_some(queue, null, null);
    perform pg_notify('trunkline.' || queue, '') where trunkline.announced('trunkline.' || queue);
    return count;
end $$;
