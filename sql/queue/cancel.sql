create or replace function trunkline.{do_cancel_}(ids bigint[])
    returns table (id bigint, done bool) language plpgsql {planner} as $f$
-- Deletes messages that wait or are leased, for good. With its row a lease is gone: its worker finds it lost. Those that
-- are busy are returned, too, as not done.
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
