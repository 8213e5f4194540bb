create or replace function trunkline.{do_lease_}(
        n int, lease interval default null, floor timestamptz[] default array_fill('-infinity'::timestamptz, array[{lanes}]), rows int default 1,
        apart bool default false)
    returns table (id bigint, attempt int, size int, enqueued_at timestamptz, due_at timestamptz, payload {type}[], metadata jsonb[],
                   ran_out bool, released int)
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Leases up to n messages and counts an attempt for each: all at once if everything that is due fits, otherwise lane by lane. With apart, a message
-- whose lease expired is leased alone. If rows is negative, the last row of the result may have no
-- id: see do_take_.
#variable_conflict use_variable
declare
    term interval := {lease};
    way int := apart::int;
    at record;
    turn record;
    dues timestamptz[] := floor;
    next_ids bigint[] := array_fill(0::bigint, array[{lanes}]);
    by_lane bool := n = 1;
    marked constant bool := rows < 0;
    to_bury int;
    stops bool;
    used int := 0;
begin
    if lease is not null then
        -- The bounds of check_lease. Without a lease, their check is not even prepared.
        term := case when lease > '0' and lease <= '365 days' and now() + lease > now() and now() + lease <= now() + interval '8808 hours' then lease
                     else trunkline.check_lease(lease) end;
    end if;
    if {limited} then
        n := trunkline.{do_allowed_}(n, true);
    end if;
    rows := abs(rows);
    while n > 0 and not {paused} loop
        if not by_lane then
            at := trunkline.{do_heads_}(n, rows, apart, floor);
            by_lane := at.more;
        else
            turn := trunkline.{do_turn_}(dues, next_ids);
            exit when turn.lane is null;
            at := trunkline.{do_gather_}(n, rows, true, way, dues[turn.lane + 1], next_ids[turn.lane + 1], turn.lane, turn.bound, to_bury);
            to_bury := at.to_bury;
            -- If `more` is false, no free row is left below the bound: other sessions hold the other
            -- rows of the lane, or these rows are due later.
            dues[turn.lane + 1] := case when at.more then at.due else turn.bound end;
            next_ids[turn.lane + 1] := case when at.more then at.id else 9223372036854775807 end;
        end if;
        continue when at.got = 0 and by_lane and (to_bury <= 0) is not true;
        exit when at.got = 0;
        if cardinality(at.tids) = 1 then
            -- The usual case if messages are few: a single row needs no order.
            return query
                update trunkline.{queue_} q
                set due_at = trunkline.clock() + term, attempt = q.attempt + 1, error = null
                where q.ctid = at.tids[1]
                returning q.id, q.attempt, q.size, q.enqueued_at, q.due_at, q.payload, q.metadata, at.ran_out, q.released;
        else
            return query
                with leased as (
                    update trunkline.{queue_} q
                    set due_at = trunkline.clock() + term, attempt = q.attempt + 1, error = null
                    from unnest(at.tids) with ordinality d(tid, nr)
                    where q.ctid = d.tid
                    returning d.nr, q.id, q.attempt, q.size, q.enqueued_at, q.due_at, q.payload, q.metadata, q.released)
                select l.id, l.attempt, l.size, l.enqueued_at, l.due_at, l.payload, l.metadata, at.ran_out, l.released
                from leased l order by l.nr;
        end if;
        used := used + at.got;
        exit when at.ran_out or not at.more and not by_lane;
        n := n - at.got;
        -- After a row that could not be returned whole, only as many rows are locked as could be
        -- used. Otherwise each row that has to be split would require reading all of them.
        stops := stops or at.more and cardinality(at.tids) < rows;
        rows := least(n, 1 + n::bigint * cardinality(at.tids) / at.got, case when stops then 4 + 2 * cardinality(at.tids) else n end);
        way := least(2 * way, 2); -- after the first pass, messages whose lease expired are left out
    end loop;
    if {limited} and used > 0 then
        perform trunkline.{do_used_}(used);
    end if;
    if marked and to_bury <= 0 then
        return query select null::bigint, 0, 0, null::timestamptz, null::timestamptz, null::{type}[], null::jsonb[], false, 0;
    end if;
end $f$;
