create or replace function trunkline.{do_shift_}(passed interval) returns bigint
    language sql set search_path = pg_catalog, pg_temp as $f$
-- Serves programs of 0.1.0: calls trunkline.shift.
    select trunkline.shift({literal}, passed);
$f$;
