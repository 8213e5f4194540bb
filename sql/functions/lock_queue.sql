create or replace function trunkline.lock_queue(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- For sessions that create, alter or drop a queue: one at a time, and not while rights or the schema change, which concern
-- every queue (see trunkline.grant_rights and migrate). Postgres lets one of two who change the same object fail. Locks of a table and of a row, for which a role
-- needs the owner's rights; an advisory lock could be held by any role. Two that create one queue meet at its row.
begin
    lock table trunkline.migration in share mode;
    perform from trunkline.queue q where q.name = queue for no key update;
end $$;
