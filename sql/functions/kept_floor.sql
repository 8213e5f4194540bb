create or replace function trunkline.kept_floor(queue text) returns timestamptz
    language plpgsql set search_path = pg_catalog, pg_temp set row_security = on as $$
-- Returns the floor with which a new session or process may start. This is the stored floor, unless
-- the clock is behind it. It is lower if a clock or a manual change has put a row below it. To find
-- such rows, the function sweeps part of the table, or all of it if few rows are dead: a program
-- that takes once and ends never sweeps again. Producers need no floor, because they read no rows.
declare
    kept timestamptz;
    stray timestamptz;
begin
    select f.reached into kept from trunkline.floor f where f.queue = kept_floor.queue and f.reached <= clock_timestamp();
    if kept > '-infinity' and has_table_privilege(to_regclass(format('trunkline.%I', 'queue_' || queue)), 'select') then
        execute format('select s.stray from trunkline.%I(%s, null) s', 'do_sweep_' || queue, trunkline.in_lanes(queue, '$1')) into stray using kept;
    end if;
    return coalesce(least(kept, stray), '-infinity');
end $$;
