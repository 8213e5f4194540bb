create or replace function trunkline.kept_floor(queue text) returns timestamptz
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Returns the floor with which a new session or process may start: the stored one, unless the clock is behind it, and
-- never above a row that a clock or a manual change put below it. A program that takes once and ends never sweeps
-- again. So part of the table is swept here, or all of it if few rows are dead. Producers, which read no rows, need no
-- floor.
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
