create or replace function trunkline.lock_queue(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Locks a queue for a session that creates, alters or drops it. Such sessions run one at a time, and not while rights
-- or the schema change, which affect every queue (see trunkline.grant_rights and migrate). Without the lock, one
-- of two concurrent changes of the same object would fail. The locks are on a table and a row, and need the
-- owner's rights; any role could hold an advisory lock. Two sessions that create the same queue wait for each other at
-- its row.
begin
    perform trunkline.check_rights();
    lock table trunkline.migration in share mode;
    perform from trunkline.queue q where q.name = queue for no key update;
end $$;
