create or replace function trunkline.{do_discard_}(ids bigint[], n bigint)
    returns setof bigint language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Deletes dead letters permanently: those with the given ids or, if ids is null, the oldest; at most n (null means no limit). Skips dead letters that
-- another transaction has locked.
#variable_conflict use_variable
begin
    if ids is null then
        ids := array(select d.id from trunkline.{dead_} d order by d.id limit n for update skip locked);
    else
        ids := array(select d.id from trunkline.{dead_} d where d.id = any (ids) order by d.id limit n for update skip locked);
    end if;
    return query delete from trunkline.{dead_} d where d.id = any (ids) returning d.id;
end $f$;
