create or replace function trunkline.{do_prune_}(age interval)
    returns bigint language plpgsql {planner} as $f$
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
