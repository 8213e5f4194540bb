create or replace function trunkline.kept_floor(queue text) returns timestamptz
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Where a session or process that begins now may set its floor: where others left it, unless the clock is not the one that
-- it was then, and not above a row that a clock or a hand put below it. A program that takes once and ends never sweeps again: so
-- a part is swept here, where little is dead all of it. Producers, who read no rows, need no floor.
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
