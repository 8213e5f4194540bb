create or replace function trunkline.{do_behind_}(ids bigint[])
    returns bigint[] language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Returns which of these messages are behind a message of the same key that failed and waits for
-- its retry. Ending them first would break the order. A worker itself releases the messages that it
-- has not started; for SQL, trunkline.settle calls this function.
#variable_conflict use_variable
begin
    return (
        select array_agg(m.id order by m.id)
        from unnest(ids) m(id), lateral (
            select r.lane, r.place, r.id, r.size, r.keys[(m.id - r.id)::int + 1] as key
            from trunkline.{queue_} r where r.id <= m.id and r.id >= m.id / 1024 * 1024 order by r.id desc limit 1) q
        where m.id - q.id < q.size and exists (
            -- A key has its own backlog after one of its messages failed.
            select from trunkline.{queue_} r
            where r.lane = q.lane and r.line = q.key and (r.place, r.id + 0) < (q.place, m.id) and r.error is not null));
end $f$;
