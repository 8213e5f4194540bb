create or replace function trunkline.{do_dead_}(after bigint, n bigint)
    returns setof trunkline.{dead_} language plpgsql stable
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Returns a page of dead letters; the primary key is the cursor.
#variable_conflict use_variable
begin
    return query select d.* from trunkline.{dead_} d where d.id > after order by d.id limit n;
end $f$;
