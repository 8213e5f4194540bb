-- For whoever creates, alters or drops a queue: one at a time, and not while rights or the schema change, which concern
-- every queue (see trunkline.grant_rights and migrate). Postgres lets one of two who change the same object fail.
create or replace function trunkline.lock_queue(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform pg_advisory_xact_lock_shared(hashtextextended('trunkline.migrate', 0));
    perform pg_advisory_xact_lock(hashtextextended('trunkline.queue ' || queue, 0));
end $$;
