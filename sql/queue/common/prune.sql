create or replace function trunkline.{do_prune_}(age interval)
    returns bigint language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Deletes archived messages by age; a message that was archived while a clock was ahead counts as archived now. Reads along the index: a condition on
-- clock_timestamp() itself, which changes, could not use an index.
#variable_conflict use_variable
declare
    before timestamptz := clock_timestamp() - age;
    count bigint;
begin
    update trunkline.{archive_} a set archived_at = before + age where a.archived_at > before + age;
    delete from trunkline.{archive_} a where a.archived_at < before;
    get diagnostics count = row_count;
    return count;
end $f$;
