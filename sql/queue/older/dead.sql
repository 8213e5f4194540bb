create or replace function trunkline.{do_dead_}(after bigint, n bigint) returns setof trunkline.{dead_}
    language sql set search_path = pg_catalog, pg_temp as $f$
-- Serves programs of 0.1.0: calls trunkline.page.
    select p.* from trunkline.page(null::trunkline.{dead_}, after, n) p;
$f$;
