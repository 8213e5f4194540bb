create or replace function trunkline.prune_archive(queue text, age interval) returns bigint
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off as $$
-- Deletes archived messages by age; a message that was archived while a clock was ahead counts as archived now. Reads
-- along the index: a condition on clock_timestamp() itself, which changes, could not use an index.
declare
    archive text := format('trunkline.%I', 'archive_' || queue);
    before timestamptz := clock_timestamp() - age;
    count bigint;
begin
    execute format('update %s a set archived_at = $1 where a.archived_at > $1', archive) using before + age;
    execute format('delete from %s a where a.archived_at < $1', archive) using before;
    get diagnostics count = row_count;
    return count;
end $$;
