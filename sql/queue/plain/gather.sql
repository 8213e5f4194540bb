create or replace function trunkline.{do_gather_}(
        n int, rows int, cut bool, apart int, inout due timestamptz, inout id bigint,
        inout to_bury int default null, out tids tid[], out got int, out ran_out bool, out more bool)
    language plpgsql set search_path = pg_catalog, pg_temp as $f$
-- Locks due rows, oldest first, with at most n messages in total. Takes and leases both use it.
-- Starts at the position (due, id). Returns the ctids in order (none if nothing is due) and, if
-- more rows may be due, the next position.
--
-- Some rows cannot be returned whole: they are too large for n, their lease expired, or their
-- attempts are used up. If such a row comes first, it is split or buried. In the caller's
-- transaction, that would hide the rest of the row until the commit. So with cut = false, such a
-- row is an error, and the caller releases the locks. The error's text is the number of rows before
-- it that can be returned.
--
-- to_bury: how much the caller's statement may still bury; null before its first burial. A message
-- counts as 1, 8 KiB of a row's payload as 1 more, and each statement that buries as 8. When it is
-- used up, the function returns no row, so that the caller can commit: thousands of messages at the
-- head of a queue may have used up their attempts.
--
-- apart: what to do with a message whose lease expired, because it may have crashed its worker:
-- return it with others (0), alone (1), or not at all (2).
#variable_conflict use_variable
declare
    until timestamptz := clock_timestamp();
    line record;
    seen record;
    wanted int := rows;
begin
    tids := '{}';
    got := 0;
    ran_out := false;
    more := false;
    if {paused} then
        return;
    end if;
    while n > 0 loop
        if rows > 1 then
            -- The usual case: all rows found can be returned whole, so that neither a running total nor a second query is needed.
            with due_row as materialized (
                select q.ctid as tid, q.id, q.due_at, q.size,
                       q.attempt - q.released >= {max_attempts}
                       or q.attempt > 0 and q.error is null and (q.size > 1 or apart > 0) as awkward
                from trunkline.{queue_} q where (q.due_at, q.id + 0) >= (due, id) and q.due_at <= until
                order by q.due_at, q.id + 0 limit rows for update skip locked
            )
            select count(*)::int as locked, sum(d.size) as size, bool_or(d.awkward) as awkward, max(d.due_at) as due,
                   array_agg(d.tid order by d.due_at, d.id) as tids
            into line from due_row d;
            if line.locked = 0 then
                return;
            elsif line.size <= n and not line.awkward then
                tids := line.tids;
                got := line.size;
                more := line.locked = rows and got < n;
                if more then
                    due := line.due;
                    id := (select q.id + 1 from trunkline.{queue_} q where q.ctid = tids[line.locked]);
                end if;
                return;
            end if;
        end if;
        if rows = 1 then
            -- A single row needs no running total.
            select 1 as locked, array[q.ctid] as tids, q.size as got, q.id as first, q.size,
                   q.attempt - q.released >= {max_attempts} as spent,
                   q.attempt > 0 and q.error is null as vanished,
                   (q.size <= n and q.attempt - q.released < {max_attempts}
                    and (q.attempt = 0 or q.error is not null or q.size = 1 and apart = 0))::int as fitting,
                   q.due_at as due, q.id as id, array[q.ctid] as spent_tids, q.due_at as next_due, q.id + 1 as next_id
            into seen
            from trunkline.{queue_} q where (q.due_at, q.id + 0) >= (due, id) and q.due_at <= until
            order by q.due_at, q.id + 0 limit rows for update skip locked;
            if not found then
                return;
            end if;
        else
            with due_row as materialized (
                select q.ctid as tid, q.id, q.due_at, q.size,
                       q.attempt - q.released >= {max_attempts} as spent,
                       q.attempt > 0 and q.error is null as vanished
                from unnest(line.tids) d(tid) join trunkline.{queue_} q on q.ctid = d.tid
            ), total as (
                select d.*, row_number() over w as nr,
                       sum(d.size) over w <= n and not bool_or(d.spent or d.vanished and (d.size > 1 or apart > 0)) over w as fits
                from due_row d window w as (order by d.due_at, d.id)
            )
            select count(*)::int as locked,
                   array_agg(l.tid order by l.nr) filter (where l.fits) as tids,
                   (sum(l.size) filter (where l.fits))::int as got,
                   min(l.id) filter (where l.nr = 1) as first, min(l.size) filter (where l.nr = 1) as size,
                   bool_or(l.spent) filter (where l.nr = 1) as spent, bool_or(l.vanished) filter (where l.nr = 1) as vanished,
                   (count(*) filter (where l.fits))::int as fitting,
                   max(l.due_at) filter (where l.fits) as due,
                   (array_agg(l.id order by l.nr desc) filter (where l.fits))[1] as id,
                   array_agg(l.tid) filter (where l.spent) as spent_tids,
                   coalesce(min(l.due_at) filter (where not l.spent), max(l.due_at)) as next_due,
                   coalesce((array_agg(l.id order by l.nr) filter (where not l.spent))[1],
                            (array_agg(l.id order by l.nr desc))[1] + 1) as next_id
            into seen from total l;
        end if;
        if seen.fitting < seen.locked and not cut then
            raise exception sqlstate 'TL000' using message = seen.fitting::text;
        elsif seen.locked = 0 then
            return;
        elsif seen.fitting > 0 then
            tids := seen.tids;
            got := seen.got;
            more := got < n;
            due := seen.due;
            id := seen.id + 1;
            return;
        elsif seen.spent then
            -- Buries the locked messages that have used all attempts, as far as to_bury allows. The
            -- scan continues at the first locked message that has attempts left. If there is none,
            -- it continues after the last locked message, and reads more rows at a time.
            to_bury := trunkline.{do_expire_}(seen.spent_tids, to_bury);
            exit when to_bury <= 0;
            rows := case when cardinality(seen.spent_tids) < seen.locked then wanted else least(greatest(rows, 8), 512) * 2 end;
            due := seen.next_due;
            id := seen.next_id;
        elsif seen.vanished and seen.size > 1 then
            exit when apart = 2;
            perform trunkline.{do_split_}(seen.first, array(select generate_series(1, seen.size)));
            -- Reads only the pieces again, because the row behind them may have to be split, too.
            rows := case when apart > 0 then 1 else least(rows, seen.size) end;
        elsif seen.vanished and apart > 0 then
            exit when apart = 2;
            if rows = 1 then
                tids := seen.tids;
                got := 1;
                ran_out := true;
                due := seen.due;
                id := seen.id + 1;
                return;
            end if;
            rows := 1;
        else
            perform trunkline.{do_split_}(seen.first, array[n]);
        end if;
    end loop;
end $f$;
