create or replace function trunkline.{do_discard_}(ids bigint[], n bigint)
    returns setof bigint language plpgsql {planner} as $f$
-- Deletes dead letters for good: those with these ids, or (null) the oldest, at most n of them (null is all). Passes over
-- what another transaction has locked.
#variable_conflict use_variable
begin
    if ids is null then
        ids := array(select d.id from trunkline.{dead_} d order by d.id limit n for update skip locked);
    else
        ids := array(select d.id from trunkline.{dead_} d where d.id = any (ids) order by d.id limit n for update skip locked);
    end if;
    return query delete from trunkline.{dead_} d where d.id = any (ids) returning d.id;
end $f$;
