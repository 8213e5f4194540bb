create or replace function trunkline.discard(queue text, ids bigint[]) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Deletes dead letters permanently; returns how many. Skips dead letters that another transaction has locked.
--
-- Example:
--     select trunkline.discard('emails', array(select id from trunkline.dead_emails where dead_at < now() - interval '30 days'));
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    select count(*) into count from trunkline.discard_some(queue, trunkline.check_ids(ids, 'discard'), null);
    return count;
end $$;
