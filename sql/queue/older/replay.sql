create or replace function trunkline.{do_replay_}(ids bigint[], n bigint) returns setof bigint
    language sql set search_path = pg_catalog, pg_temp as $f$
-- Serves programs of 0.1.0: calls trunkline.replay_some.
    select r.id from trunkline.replay_some({literal}, ids, n) r(id);
$f$;
