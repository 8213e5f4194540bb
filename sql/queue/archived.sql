create or replace function trunkline.{do_archived_}(after bigint, n bigint)
    returns setof trunkline.{archive_} language plpgsql stable {planner} as $f$
-- Returns a page of the archive; the primary key is the cursor.
#variable_conflict use_variable
begin
    return query select a.* from trunkline.{archive_} a where a.id > after order by a.id limit n;
end $f$;
