create or replace function trunkline.{do_discard_}(ids bigint[], n bigint) returns setof bigint
    language sql set search_path = pg_catalog, pg_temp as $f$
-- Serves programs of 0.1.0: calls trunkline.discard_some.
    select d.id from trunkline.discard_some({literal}, ids, n) d(id);
$f$;
