create or replace function trunkline.check_snapshot(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Fails if a compaction has copied a table of the queue since the transaction's snapshot was taken: the snapshot shows
-- such a table as empty. Only transactions above read committed can have such a snapshot. The caller must have read the
-- tables before: then they are locked, and no compaction follows.
begin
    -- The snapshot shows the catalog of its time, and the function the present one.
    if exists (
        select from unnest(array['queue_', 'unique_', 'line_', 'lane_']) t(prefix)
        join pg_class c on c.oid = to_regclass(format('trunkline.%I', t.prefix || queue))
        where c.relfilenode <> pg_relation_filenode(c.oid)) then
        raise exception 'queue % was compacted after the snapshot of this transaction was taken', quote_literal(queue)
            using errcode = 'serialization_failure', hint = 'Run the transaction again.';
    end if;
end $$;
