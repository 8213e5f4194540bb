create or replace function trunkline.{do_prune_}(age interval) returns bigint
    language sql set search_path = pg_catalog, pg_temp as $f$
-- Serves programs of 0.1.0: calls trunkline.prune.
    select trunkline.prune({literal}, age);
$f$;
