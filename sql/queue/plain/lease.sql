create or replace function trunkline.{do_lease_}(
        n int, lease interval default null, floor timestamptz default '-infinity', rows int default 1, apart bool default false)
    returns table (id bigint, attempt int, size int, enqueued_at timestamptz, due_at timestamptz, payload {type}[], metadata jsonb[],
                   ran_out bool, released int)
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Leases up to n messages and counts an attempt for each. With apart, a message whose lease expired is leased alone.
-- If rows is negative, the last row of the result may have no id: see do_take_.
#variable_conflict use_variable
declare
    term interval := {lease};
    way int := apart::int;
    at record;
    due timestamptz := floor;
    until timestamptz := clock_timestamp();
    next_id bigint := 0;
    marked bool;
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
    if n between 1 and abs(rows) and not {limited} and not {paused} then
        -- The usual case if messages are few: all due rows can be leased whole, with one statement.
        if n = 1 then
            -- One message needs no running total and no sorted result; both would only cost time.
            return query
                update trunkline.{queue_} q
                set due_at = trunkline.clock() + term, attempt = q.attempt + 1, error = null
                where q.ctid = (select h.ctid from trunkline.{queue_} h where (h.due_at, h.id + 0) >= (due, 0) and h.due_at <= until
                                order by h.due_at, h.id + 0 limit 1 for update skip locked)
                  and q.size = 1 and q.attempt - q.released < {max_attempts} and not (q.attempt > 0 and q.error is null and apart)
                returning q.id, q.attempt, q.size, q.enqueued_at, q.due_at, q.payload, q.metadata, false, q.released;
        else
            return query
                with head as materialized (
                    select q.ctid as tid, q.due_at, q.id, q.size,
                           q.attempt - q.released >= {max_attempts} or q.attempt > 0 and q.error is null and (q.size > 1 or apart) as awkward
                    from trunkline.{queue_} q where (q.due_at, q.id + 0) >= (due, 0) and q.due_at <= until
                    order by q.due_at, q.id + 0 limit abs(rows) for update skip locked
                ), whole as materialized (
                    select sum(h.size) <= n and not bool_or(h.awkward) as fits from head h
                ), leased as (
                    update trunkline.{queue_} q
                    set due_at = trunkline.clock() + term, attempt = q.attempt + 1, error = null
                    from head h, whole w where w.fits and q.ctid = h.tid
                    returning h.due_at as was_due, q.id, q.attempt, q.size, q.enqueued_at, q.due_at, q.payload, q.metadata, q.released)
                select l.id, l.attempt, l.size, l.enqueued_at, l.due_at, l.payload, l.metadata, false, l.released
                from leased l order by l.was_due, l.id;
        end if;
        if found then
            return;
        elsif n = 1 then
            perform from trunkline.{queue_} q where (q.due_at, q.id + 0) >= (due, 0) and q.due_at <= until
            order by q.due_at, q.id + 0 limit 1 for update skip locked;
            if not found then
                return; -- nothing is due: not even a row that has to be split
            end if;
        end if;
    end if;
    marked := rows < 0;
    rows := abs(rows);
    while n > 0 loop
        at := trunkline.{do_gather_}(n, rows, true, way, due, next_id, to_bury);
        to_bury := at.to_bury;
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
        exit when at.ran_out or not at.more;
        n := n - at.got;
        -- After a row that could not be returned whole, only as many rows are locked as could be
        -- used. Otherwise each row that has to be split would require reading all of them.
        stops := stops or cardinality(at.tids) < rows;
        rows := least(n, 1 + n::bigint * cardinality(at.tids) / at.got, case when stops then 4 + 2 * cardinality(at.tids) else n end);
        way := least(2 * way, 2); -- after the first pass, messages whose lease expired are left out
        due := at.due;
        next_id := at.id;
    end loop;
    if {limited} and used > 0 then
        perform trunkline.{do_used_}(used);
    end if;
    if marked and to_bury <= 0 then
        return query select null::bigint, 0, 0, null::timestamptz, null::timestamptz, null::{type}[], null::jsonb[], false, 0;
    end if;
end $f$;
