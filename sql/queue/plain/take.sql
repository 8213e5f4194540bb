create or replace function trunkline.{do_take_}(
        n int, floor timestamptz default '-infinity', rows int default 1, cut bool default true, keep bool default false)
    returns table (id bigint, attempt int, size int, enqueued_at timestamptz, payload {type}[], metadata jsonb[], released int, error text, own jsonb)
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Takes up to n messages. If a due row was left in the queue because it must be split first, the
-- last row of the result has no id. With keep, the result also has the values of columns that users
-- added, for a caller that may have to put messages back.
--
-- rows: about how many rows hold n messages. If it is negative, the last row of the result also has
-- no id if the call has stopped because it has buried many messages. More messages may be due: the
-- caller commits, and calls again.
#variable_conflict use_variable
declare
    at record;
    due timestamptz := floor;
    until timestamptz := clock_timestamp();
    next_id bigint := 0;
    marked bool;
    to_bury int;
    stops bool;
    used int := 0;
begin
    if {limited} then
        n := trunkline.{do_allowed_}(n, true);
    end if;
    if cut and n between 1 and abs(rows) and not {limited} and not {paused} then
        -- The usual case if messages are few: all due rows can be taken whole, with one statement.
        if n = 1 then
            -- The general form below sums sizes and sorts its result. For one message, neither is needed,
            -- and both together would make the statement 30 % slower.
            return query
                delete from trunkline.{queue_} q
                where q.ctid = (select h.ctid from trunkline.{queue_} h where (h.due_at, h.id + 0) >= (due, 0) and h.due_at <= until
                                order by h.due_at, h.id + 0 limit 1 for update skip locked)
                  and q.size = 1 and q.attempt - q.released < {max_attempts}
                returning q.id, q.attempt, q.size, q.enqueued_at, q.payload, q.metadata, q.released, q.error,
                          case when keep then trunkline.{do_kept_}(q.*) end;
        else
            return query
                with head as materialized (
                    select q.ctid as tid, q.due_at, q.id, q.size,
                           q.attempt - q.released >= {max_attempts} or q.attempt > 0 and q.error is null and q.size > 1 as awkward
                    from trunkline.{queue_} q where (q.due_at, q.id + 0) >= (due, 0) and q.due_at <= until
                    order by q.due_at, q.id + 0 limit abs(rows) for update skip locked
                ), whole as materialized (
                    select sum(h.size) <= n and not bool_or(h.awkward) as fits from head h
                ), gone as (
                    delete from trunkline.{queue_} q using head h, whole w where w.fits and q.ctid = h.tid
                    returning q.due_at, q.id, q.attempt, q.size, q.enqueued_at, q.payload, q.metadata, q.released, q.error,
                              case when keep then trunkline.{do_kept_}(q.*) end as own)
                select g.id, g.attempt, g.size, g.enqueued_at, g.payload, g.metadata, g.released, g.error, g.own
                from gone g order by g.due_at, g.id;
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
        if cut then
            at := trunkline.{do_gather_}(n, rows, true, 0, due, next_id, to_bury);
        else
            begin
                at := trunkline.{do_gather_}(n, rows, false, 0, due, next_id, to_bury);
            exception when sqlstate 'TL000' then
                rows := sqlerrm::int;
                stops := true;
                continue when rows > 0;
                if {limited} and used > 0 then
                    perform trunkline.{do_used_}(used); -- counts the rows that earlier passes have taken
                end if;
                return query select null::bigint, 0, 0, null::timestamptz, null::{type}[], null::jsonb[], 0, null::text, null::jsonb;
                return;
            end;
        end if;
        to_bury := at.to_bury;
        exit when at.got = 0;
        if cardinality(at.tids) = 1 then
            -- The usual case if messages are few: a single row needs no order.
            return query
                delete from trunkline.{queue_} q where q.ctid = at.tids[1]
                returning q.id, q.attempt, q.size, q.enqueued_at, q.payload, q.metadata, q.released, q.error,
                          case when keep then trunkline.{do_kept_}(q.*) end;
        else
            return query
                with gone as (
                    delete from trunkline.{queue_} q using unnest(at.tids) with ordinality d(tid, nr)
                    where q.ctid = d.tid
                    returning d.nr, q.id, q.attempt, q.size, q.enqueued_at, q.payload, q.metadata, q.released, q.error,
                              case when keep then trunkline.{do_kept_}(q.*) end as own)
                select g.id, g.attempt, g.size, g.enqueued_at, g.payload, g.metadata, g.released, g.error, g.own from gone g order by g.nr;
        end if;
        used := used + at.got;
        exit when not at.more;
        n := n - at.got;
        -- After a row that could not be returned whole, only as many rows are locked as could be
        -- used. Otherwise each row that has to be split would require reading all of them.
        stops := stops or cardinality(at.tids) < rows;
        rows := least(n, 1 + n::bigint * cardinality(at.tids) / at.got, case when stops then 4 + 2 * cardinality(at.tids) else n end);
        due := at.due;
        next_id := at.id;
    end loop;
    if {limited} and used > 0 then
        perform trunkline.{do_used_}(used);
    end if;
    if marked and to_bury <= 0 then
        return query select null::bigint, 0, 0, null::timestamptz, null::{type}[], null::jsonb[], 0, null::text, null::jsonb;
    end if;
end $f$;
