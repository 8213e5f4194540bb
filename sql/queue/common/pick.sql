create or replace function trunkline.{do_pick_}(ids bigint[], leased bool, out first bigint[], out sizes int[], out busy bigint[])
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Locks the rows of these messages and splits them, so that the messages are in rows without
-- others; returns the ranges of these rows. Skips ids without a row. Skips leased messages, unless
-- the caller includes them. Waits for no lock: a worker that ends leases would wait for the rows
-- locked here, and neither session would finish. A message that another transaction has locked is
-- busy, perhaps only because of another message in its row, and the caller may try it again. Each
-- block of 1,024 ids is read once, no matter how many dead rows surround it. An array grows in place
-- only by one element at a time: to concatenate arrays would copy them once per row.
#variable_conflict use_variable
declare
    r trunkline.{queue_}%rowtype;
    wide record;
    skipped bigint;
    resting bigint[];
    lanes smallint[];
    lines text[];
begin
    first := '{}';
    sizes := '{}';
    busy := '{}';
    if {keyed} then
        -- A worker that leases along a partition skips rows that this call locks, and must not
        -- receive the messages behind them first. So this call locks the partitions. Messages of a
        -- partition that another session has locked are busy.
        with met as materialized (
            select distinct i.id, -1 - q.lane as lane from unnest(ids) i(id), lateral (
                select b.lane, b.id + b.size as stop from trunkline.{queue_} b
                where b.id <= i.id and b.id >= i.id / 1024 * 1024 order by b.id desc limit 1) q
            where i.id < q.stop
        ), free as materialized (
            select h.lane from trunkline.{lane_} h where h.lane in (select m.lane from met m) order by h.lane for update skip locked
        )
        select array(select m.id from met m where m.lane <> all (array(select f.lane from free f))) into busy;
        if busy <> '{}' then
            ids := array(select i.id from unnest(ids) i(id) except select b.id from unnest(busy) b(id));
        end if;
    end if;
    for wide in
        with asked as (
            select distinct i.id from unnest(ids) i(id) where i.id >= 0
        ), mark as materialized (
            select a.id as at, null::bigint[] as begun from asked a
            union all
            select q.id, array[q.id, q.size]
            from (select distinct a.id / 1024 * 1024 as id from asked a) block,
                 lateral (select q.id, q.size from trunkline.{queue_} q
                          where q.id >= block.id and q.id <= block.id + 1023) q
        ), met as (
            select m.at, m.begun is null as named,
                   max(m.begun) over (order by m.at, m.begun is null rows unbounded preceding) as begun
            from mark m
        ), run as (
            select n.begun, min(n.at) as at, count(*)::int as size
            from (select m.begun, m.at, m.at - row_number() over (order by m.at) as island
                  from met m where m.named and m.at - m.begun[1] < m.begun[2]) n
            group by n.begun, n.island
        )
        select u.begun[1] as id, u.begun[2] as size, array_agg(u.at order by u.at) as runs,
               array_agg(u.size order by u.at) as sizes, sum(u.size) as named
        from run u group by u.begun order by u.begun
    loop
        select * into r from trunkline.{queue_} q where q.id = wide.id for update skip locked;
        if not found or r.size <> wide.size then
            -- Another session has locked, taken or split the row in the meantime. The caller may try again with a fresh
            -- snapshot.
            for skipped in select k from unnest(wide.runs, wide.sizes) d(id, size), generate_series(d.id, d.id + d.size - 1) k loop
                busy := busy || skipped;
            end loop;
        elsif leased or r.attempt = 0 or r.error is not null or r.due_at <= clock_timestamp() then
            if wide.named < wide.size then
                perform trunkline.{do_split_}(wide.id, array(
                    select (e.at - wide.id)::int from unnest(wide.runs, wide.sizes) d(id, size), lateral (values (d.id), (d.id + d.size)) e(at)));
            end if;
            for k in 1..cardinality(wide.runs) loop
                first := first || wide.runs[k];
                sizes := sizes || wide.sizes[k];
            end loop;
        end if;
    end loop;
    if {keyed} and first <> '{}' then
        -- Each key waits for its failed messages. If the caller ends some of them or makes them due sooner, the key
        -- waits for the others. If another session has locked the key's backlog, because a message of the key failed,
        -- the messages are busy.
        with waiting as materialized (
            select d.id, q.lane, q.line from unnest(first) d(id) join trunkline.{queue_} q on q.id = d.id
            where q.line <> '' and q.error is not null and q.due_at > clock_timestamp()
        ), free as materialized (
            select l.lane, l.key from trunkline.{line_} l
            where (l.lane, l.key) in (select w.lane, w.line from waiting w) order by l.lane, l.key for update skip locked
        )
        select array_agg(w.id) filter (where f.key is null), array_agg(w.lane) filter (where f.key is not null),
               array_agg(w.line) filter (where f.key is not null)
        into resting, lanes, lines
        from waiting w left join free f on f.lane = w.lane and f.key = w.line;
        if resting is not null then
            busy := busy || array(
                select k from unnest(first, sizes) d(id, size), generate_series(d.id, d.id + d.size - 1) k
                where (d.id in (select w.id from unnest(resting) w(id))) is true); -- hashed; without `is true`, a nested loop
            select coalesce(array_agg(d.id), '{}'), coalesce(array_agg(d.size), '{}') into first, sizes
            from unnest(first, sizes) d(id, size) where d.id not in (select w.id from unnest(resting) w(id));
        end if;
        if lanes is not null then
            -- A failed message that was rescheduled holds up no other: its place in the order is
            -- behind them.
            update trunkline.{line_} l set until = coalesce((
                select max(q.due_at) from trunkline.{queue_} q
                where q.lane = l.lane and q.line = l.key and q.place <= clock_timestamp() and q.error is not null and q.due_at > clock_timestamp()
                  and q.id not in (select k from unnest(first, sizes) d(id, size), generate_series(d.id, d.id + d.size - 1) k)), '-infinity')
            where (l.lane, l.key) in (select u.lane, u.line from unnest(lanes, lines) u(lane, line));
        end if;
    end if;
end $f$;
