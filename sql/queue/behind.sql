create or replace function trunkline.{do_behind_}(ids bigint[])
    returns bigint[] language plpgsql stable {planner} as $f$
-- Of these messages, those that stand behind one of their key that failed and waits for its retry: to end them first would break the order. A worker gives
-- back by itself what it has not begun; for SQL, trunkline.settle asks.
#variable_conflict use_variable
begin
    return (
        select array_agg(m.id order by m.id)
        from unnest(ids) m(id), lateral (
            select r.lane, r.place, r.id, r.size, r.keys[(m.id - r.id)::int + 1] as key
            from trunkline.{queue_} r where r.id <= m.id and r.id >= m.id / 1024 * 1024 order by r.id desc limit 1) q
        where m.id - q.id < q.size and exists (
            -- A key of which a message failed has a line of its own.
            select from trunkline.{queue_} r
            where r.lane = q.lane and r.line = q.key and (r.place, r.id + 0) < (q.place, m.id) and r.error is not null));
end $f$;
