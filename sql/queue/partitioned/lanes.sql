create or replace function trunkline.{do_lanes_}(
        n int, lease interval, holder bigint, floor timestamptz default '-infinity', most int default null)
    returns table (id bigint, attempt int, size int, enqueued_at timestamptz, due_at timestamptz, payload {type}[], metadata jsonb[],
                   ran_out bool, released int, keys text[], rate float8[])
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Leases up to n messages for one holder (a worker): first from the partitions that it holds, then
-- from free partitions, up to its share. Only one holder can hold a partition, for as long as its
-- leases last. A worker that has too few partitions asks the holder of the most partitions for
-- some. That holder releases a partition when none of its messages is leased. Each call reads the
-- partitions in random order, so that no partition always waits behind the others.
--
-- A message whose lease expired is leased alone. For workers, a message whose lease expired for the
-- first time comes like the rest, provided that it has enough attempts left. They get one message
-- whose lease expired again together with the rest, and run it alone themselves.
--
-- most: the maximum number of partitions; null for a worker. Negative for a worker that reads a
-- last row without an id: the call has buried many messages, and more may be due (see do_take_).
--
-- rate: null unless keys have a rate. Otherwise it has three numbers of seconds: between two
-- messages of a key; until an empty bucket is full; and until a bucket is full that was empty when
-- the partition changed hands.
#variable_conflict use_variable
declare
    term interval := case when lease is null then {lease}
                          when lease > '0' and lease <= '365 days' and now() + lease > now() and now() + lease <= now() + interval '8808 hours' then lease
                          else trunkline.check_lease(lease) end;
    clock timestamptz := clock_timestamp();
    marked constant bool := most < 0;
    way int := case when marked or most is null then 3 else 1 end;
    l record;
    at record;
    tids tid[] := '{}';
    untils timestamptz[] := '{}';
    until timestamptz := clock + term * 1.5;
    held int[] := '{}';
    leaving int[] := '{}';
    alone bool := false;
    ran_out_nr int := 0;
    mine int := 0;
    allowed int;
    others int;
    to_bury int;
    ahead bool := false;
    later bool;
begin
    if {limited} then
        n := trunkline.{do_allowed_}(n, true);
    end if;
    if marked then
        most := null;
    end if;
    allowed := n;
    for l in
        -- Checks whether a message is due in each partition. The condition on `line` is a range:
        -- for an equality, the planner would hash the backlogs of all partitions.
        select h.lane, h.wanted_until > clock as wanted, h.held_until, h.floor, h.served_at > clock_timestamp() + interval '1 s' as ahead,
               (exists (select from trunkline.{queue_} q where q.lane = h.lane and q.line = '' and (q.place, q.id + 0) >= (h.floor, 0)
                               and q.place <= clock and q.due_at <= clock)
                or exists (select from trunkline.{line_} w where w.lane >= h.lane and w.lane <= h.lane and w.until <= clock)) as due
        from trunkline.{lane_} h
        where h.lane >= 0 and h.holder = holder and h.held_until > clock order by random()
    loop
        mine := mine + 1;
        if l.ahead then
            ahead := true; -- do_right_ repairs the partition below, for the next call
            continue;
        elsif l.wanted then
            leaving := leaving || l.lane::int;
            continue;
        end if;
        continue when n <= 0 or alone or not l.due;
        -- The hold may have ended in the meantime, and another worker may have taken the partition.
        -- Only a session that has locked the partition can be sure who holds it.
        perform from trunkline.{lane_} h where h.lane = -1 - l.lane for update skip locked;
        continue when not found;
        continue when not exists (
            select from trunkline.{lane_} h where h.lane = l.lane and h.holder = holder and h.held_until > clock_timestamp());
        -- Some keys have their own backlogs. Without this bound, the backlog that is read first
        -- would leave no room for the other partitions.
        at := trunkline.{do_along_}(n, l.lane, l.floor, way, case when most <= 1 then n else n - n / 4 end, to_bury);
        to_bury := at.to_bury;
        continue when at.got = 0;
        if l.held_until < clock + term * 1.25 then
            l.held_until := until;
            held := held || l.lane::int;
        end if;
        tids := tids || at.tids;
        untils := untils || array_fill(l.held_until, array[cardinality(at.tids)]);
        n := n - at.got;
        if at.ran_out then
            ran_out_nr := cardinality(tids);
            alone := way = 1;
        end if;
        way := case when at.ran_out and way = 3 then 4 else greatest(way, 2) end;
    end loop;
    if n > 0 and not alone and most is distinct from 0 then
        select count(distinct h.holder) filter (where h.held_until > clock and h.holder <> holder), coalesce(bool_or(h.served_at > clock_timestamp() + interval '1 s'), false)
        into others, later from trunkline.{lane_} h where h.lane >= 0;
        ahead := ahead or later;
        most := least(most, ({key_lanes} + others) / (others + 1));
        for l in
            -- No message of a partition without a holder is leased, so all its due messages go to
            -- the worker that gets the partition.
            select h.lane, h.floor from trunkline.{lane_} h
            where h.lane >= 0 and h.held_until <= clock
              and (exists (select from trunkline.{queue_} q where q.lane = h.lane and q.line = '' and (q.place, q.id + 0) >= (h.floor, 0)
                                and q.place <= clock and q.due_at <= clock)
                   or exists (select from trunkline.{line_} w where w.lane >= h.lane and w.lane <= h.lane and w.until <= clock))
            order by h.served_at
        loop
            exit when n <= 0 or mine >= most or alone;
            perform from trunkline.{lane_} h where h.lane = l.lane and h.held_until <= clock for update skip locked;
            continue when not found;
            at := trunkline.{do_along_}(n, l.lane, l.floor, way, case when most <= 1 then n else n - n / 4 end, to_bury);
            to_bury := at.to_bury;
            continue when at.got = 0;
            held := held || l.lane::int;
            mine := mine + 1;
            tids := tids || at.tids;
            untils := untils || array_fill(until, array[cardinality(at.tids)]);
            n := n - at.got;
            if at.ran_out then
                ran_out_nr := cardinality(tids);
                alone := way = 1;
            end if;
            way := case when at.ran_out and way = 3 then 4 else greatest(way, 2) end;
        end loop;
        if n > 0 and others > 0 and mine < least(most, {key_lanes} / (others + 1)) then
            perform trunkline.{do_want_}(least(most, {key_lanes} / (others + 1)) - mine, {key_lanes} / (others + 1), holder, until);
        end if;
    end if;
    if ahead then
        perform trunkline.{do_right_}(1);
    end if;
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform trunkline.check_snapshot({literal}); -- otherwise keys that wait could be invisible
    end if;
    if held <> '{}' and leaving <> '{}' then
        -- The next two calls lock some partitions each. Together they must lock them in the order of
        -- their numbers, as a renewal does.
        perform from trunkline.{lane_} h where h.lane = any (held || leaving) order by h.lane for update;
    end if;
    perform trunkline.{do_holdlane_}(held, holder, until, floor, clock);
    if leaving <> '{}' then
        perform trunkline.{do_leave_}(leaving, holder);
    end if;
    return query
        with leased as (
            update trunkline.{queue_} q
            set due_at = greatest(d.until, trunkline.clock()), attempt = q.attempt + 1, error = null
            from unnest(tids, untils) with ordinality d(tid, until, nr)
            where q.ctid = d.tid
            returning d.nr, q.id, q.attempt, q.size, q.enqueued_at, q.due_at, q.payload, q.metadata, q.released, q.keys, q.lane)
        select e.id, e.attempt, e.size, e.enqueued_at, e.due_at, e.payload, e.metadata, e.nr = ran_out_nr, e.released, e.keys,
               case when {key_per_second}::float8 is not null then (
                   select array[1 / {key_per_second}::float8, {key_burst}::float8 / {key_per_second}::float8,
                                case when isfinite(h.empty_at) then greatest(
                                    extract(epoch from h.empty_at - clock)::float8 + {key_burst}::float8 / {key_per_second}::float8, 0)
                                else 0 end]
                   from trunkline.{lane_} h where h.lane = e.lane) end
        from leased e order by e.nr;
    if {limited} and allowed > n then
        perform trunkline.{do_used_}(allowed - n);
    end if;
    if marked and to_bury <= 0 then
        return query select null::bigint, 0, 0, null::timestamptz, null::timestamptz, null::{type}[], null::jsonb[], false, 0, null::text[], null::float8[];
    end if;
end $f$;
