create or replace function trunkline.{do_gone_}(ids bigint[], attempts int[]) returns setof bigint
    language sql set search_path = pg_catalog, pg_temp as $f$
-- Serves programs of 0.1.0: calls trunkline.gone.
    select g.id from trunkline.gone({literal}, ids, attempts) g(id);
$f$;
