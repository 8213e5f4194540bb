create or replace function trunkline.{do_archived_}(after bigint, n bigint) returns setof trunkline.{archive_}
    language sql set search_path = pg_catalog, pg_temp as $f$
-- Serves programs of 0.1.0: calls trunkline.page.
    select p.* from trunkline.page(null::trunkline.{archive_}, after, n) p;
$f$;
