create or replace function trunkline.{do_prune_}(age interval)
    returns bigint language plpgsql {planner} as $f$
-- By age, as of now where a clock that was ahead archived it; along the index: a condition on the clock itself, which moves, would not be one for an index.
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
