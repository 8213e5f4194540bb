create or replace function trunkline.{do_dead_}(after bigint, n bigint)
    returns setof trunkline.{dead_} language plpgsql stable {planner} as $f$
-- Returns a page of dead letters; the primary key is the cursor.
#variable_conflict use_variable
begin
    return query select d.* from trunkline.{dead_} d where d.id > after order by d.id limit n;
end $f$;
