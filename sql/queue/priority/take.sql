create or replace function trunkline.{do_take_}(
        n int, floor timestamptz[] default array_fill('-infinity'::timestamptz, array[{lanes}]), rows int default 1, cut bool default true,
        keep bool default false)
    returns table (id bigint, attempt int, size int, enqueued_at timestamptz, payload {type}[], metadata jsonb[], released int, error text, own jsonb)
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Takes up to n messages: all at once if everything that is due fits, otherwise lane by lane. If a
-- due row was left in the queue because it must be split first, the last row of the result has no
-- id. With keep, the result also has the lane and the values of columns that users added, for a
-- caller that may have to put messages back.
--
-- rows: about how many rows hold n messages. If it is negative, the last row of the result also has
-- no id if the call has stopped because it has buried many messages. More messages may be due: the
-- caller commits, and calls again.
#variable_conflict use_variable
declare
    at record;
    turn record;
    dues timestamptz[] := floor;
    next_ids bigint[] := array_fill(0::bigint, array[{lanes}]);
    by_lane bool := n = 1 or not cut;
    marked constant bool := rows < 0;
    to_bury int;
    stops bool;
    used int := 0;
begin
    if {limited} then
        n := trunkline.{do_allowed_}(n, true);
    end if;
    rows := abs(rows);
    while n > 0 and not {paused} loop
        if not by_lane then
            at := trunkline.{do_heads_}(n, rows, false, floor);
            by_lane := at.more;
        else
            turn := trunkline.{do_turn_}(dues, next_ids);
            exit when turn.lane is null;
            if cut then
                at := trunkline.{do_gather_}(n, rows, true, 0, dues[turn.lane + 1], next_ids[turn.lane + 1], turn.lane, turn.bound, to_bury);
            else
                begin
                    at := trunkline.{do_gather_}(n, rows, false, 0, dues[turn.lane + 1], next_ids[turn.lane + 1], turn.lane, turn.bound, to_bury);
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
        exit when not at.more and not by_lane;
        n := n - at.got;
        -- After a row that could not be returned whole, only as many rows are locked as could be
        -- used. Otherwise each row that has to be split would require reading all of them.
        stops := stops or at.more and cardinality(at.tids) < rows;
        rows := least(n, 1 + n::bigint * cardinality(at.tids) / at.got, case when stops then 4 + 2 * cardinality(at.tids) else n end);
    end loop;
    if {limited} and used > 0 then
        perform trunkline.{do_used_}(used);
    end if;
    if marked and to_bury <= 0 then
        return query select null::bigint, 0, 0, null::timestamptz, null::{type}[], null::jsonb[], 0, null::text, null::jsonb;
    end if;
end $f$;
