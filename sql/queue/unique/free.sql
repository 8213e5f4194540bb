create or replace function trunkline.{do_free_}()
    returns trigger language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- The function of a trigger on the queue's table. Every verb that ends a message deletes it from
-- this table, so its key becomes free in the same transaction. A key that was claimed for a fixed
-- time stays. Only for queues with uniqueness.
begin
    if tg_op = 'TRUNCATE' then
        delete from trunkline.{unique_} u where u.until is null;
    else
        delete from trunkline.{unique_} u where u.ctid = any (array(
            select k.tid from gone g,
                 lateral (select h.ctid as tid from trunkline.{unique_} h
                          where h.id >= g.id and h.id < g.id + g.size and h.until is null offset 0) k));
    end if;
    return null;
end $f$;
