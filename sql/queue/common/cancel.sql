create or replace function trunkline.{do_cancel_}(ids bigint[])
    returns table (id bigint, done bool) language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Deletes messages that wait or are leased, permanently. Deleting a row also ends its lease: the
-- worker finds the lease lost. The result also contains busy messages, with done = false.
#variable_conflict use_variable
declare
    picked record;
begin
    picked := trunkline.{do_pick_}(ids, true);
    return query
        with gone as (
            delete from trunkline.{queue_} q using unnest(picked.first, picked.sizes) d(id, size)
            where q.id >= d.id and q.id < d.id + d.size
            returning q.id, q.size)
        select g.id + k, true from gone g, generate_series(0, g.size - 1) k;
    return query select b, false from unnest(picked.busy) b;
end $f$;
