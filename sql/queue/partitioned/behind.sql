create or replace function trunkline.{do_behind_}(ids bigint[])
    returns bigint[] language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Returns which of these messages are behind a message of the same key that failed and waits for
-- its retry. Ending them first would break the order. A worker itself releases the messages that it
-- has not started; for SQL, trunkline.settle calls this function.
#variable_conflict use_variable
begin
    -- If a message of a key has failed, the key has its own backlog. The query reads this backlog once for all messages
    -- of the key.
    return (
        select array_agg(m.id order by m.id)
        from (select q.lane, q.key, max(q.place) as place, array_agg(q.id) as ids, array_agg(q.place) as places
              from unnest(ids) i(id), lateral (
                  select i.id, r.lane, r.place, r.keys[(i.id - r.id)::int + 1] as key, i.id - r.id < r.size as is_met from trunkline.{queue_} r
                  where r.id <= i.id and r.id >= i.id / 1024 * 1024 order by r.id desc limit 1) q
              where q.is_met group by q.lane, q.key) k,
             lateral (
                  select r.place, r.id from trunkline.{queue_} r
                  where r.lane = k.lane and r.line = k.key and r.place <= k.place and r.error is not null
                  order by r.place, r.id + 0 limit 1) f,
             unnest(k.ids, k.places) m(id, place)
        where (f.place, f.id) < (m.place, m.id));
end $f$;
