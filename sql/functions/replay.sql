create or replace function trunkline.replay(queue text, ids bigint[]) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Makes dead letters due again under the same ids, with a fresh set of attempts; returns how many. Attempt numbers
-- continue from the previous ones, so a late worker's lease stays lost. Skips dead letters that another transaction has
-- locked. A dead letter whose id another message has by now gets another id. Columns that you added get back the values
-- that the messages had. A value that no longer fits its column is an error of class 22 or 23, which names the dead
-- letter; then nothing is replayed.
--
-- Example:
--     select trunkline.replay('emails', array(select id from trunkline.dead_emails where error = 'no such address'));
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    select count(*) into count from trunkline.replay_some(queue, trunkline.check_ids(ids, 'replay'), null);
    perform pg_notify('trunkline.' || queue, '') where trunkline.announced('trunkline.' || queue);
    return count;
end $$;
