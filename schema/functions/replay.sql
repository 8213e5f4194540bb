-- Makes dead letters due again under the same ids, with their attempts forgiven; returns how many. Attempt numbers go on
-- from where they were, so that a late worker's lease stays lost. Passes over what somebody else has locked.
create or replace function trunkline.replay(queue text, ids bigint[]) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('select count(*) from trunkline.%I($1, null)', 'do_replay_' || queue)
        into count using trunkline.check_ids(ids, 'replay');
    perform pg_notify('trunkline.' || queue, '');
    return count;
end $$;
