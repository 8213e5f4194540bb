create or replace function trunkline.{do_archived_}(after bigint, n bigint)
    returns setof trunkline.{archive_} language plpgsql stable
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Returns a page of the archive; the primary key is the cursor.
#variable_conflict use_variable
begin
    return query select a.* from trunkline.{archive_} a where a.id > after order by a.id limit n;
end $f$;
