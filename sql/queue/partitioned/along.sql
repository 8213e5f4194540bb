create or replace function trunkline.{do_along_}(
        n int, lane int, floor timestamptz, way int, lined_n int, inout to_bury int default null,
        out tids tid[], out got int, out ran_out bool)
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Locks messages of a partition that the caller holds, up to n that may be leased. It first reads
-- the partition's backlog (line). Messages of keys that have their own backlogs move to those. Then
-- it reads the keys' backlogs, but only up to the point where it stopped in the partition's
-- backlog: messages beyond that point could belong behind unread messages of the partition's
-- backlog. While another session cancels or reschedules messages of the partition, it splits rows
-- and holds the partition's lock. Then nothing of the partition is leased: a row that was skipped
-- because it was locked would come too late.
--
-- A quarter of the messages is reserved for the keys' backlogs. If n is below 4, a quarter of the
-- calls reads these first, for one message. So they also advance if each call leases one message.
--
-- lined_n: the maximum number of messages from backlogs of keys. to_bury: see do_gather_. way: a
-- message whose lease expired is leased alone (1) or not at all (2). With 3, a message whose lease
-- expired for the first time comes like the rest. A message whose lease expired again comes last,
-- and no message of the call comes behind it, because the caller runs it apart. With 4 such a
-- message does not come at all.
#variable_conflict use_variable
declare
    clock timestamptz;
    at record;
    known record;
    lined text[];
    -- If keys have a rate, one call leases at most half a bucket of messages of a key, plus the
    -- refill during that time.
    most_of_key constant int := case when {key_per_second}::float8 is not null then
        greatest(least(ceil({key_burst}::float8 / 2 + {key_per_second}::float8 * extract(epoch from {lease}) / 16), 64), 1) end;
    wanted int := n;
    room int;
    bound timestamptz;
    lines_first bool := false;
    apart int := way;
    rows int;
    due timestamptz := floor;
    row_tid tid;
    next_id bigint := 0;
begin
    tids := '{}';
    got := 0;
    ran_out := false;
    perform from trunkline.{lane_} h where h.lane = -1 - lane for update skip locked;
    if not found then
        return;
    end if;
    lined := array(select l.key from trunkline.{line_} l where l.lane = lane);
    if lined <> '{}' then
        lines_first := n < 4 and random() < 0.25;
        wanted := n - n / 4;
    end if;
    for part in 1..2 loop
        if lines_first = (part = 1) then
            exit when lined = '{}';
            clock := clock_timestamp();
            -- Rows of one statement have the same place. So rows at the place of the first unread
            -- row may belong behind that row.
            bound := (
                select q.place - interval '1 microsecond' from trunkline.{queue_} q
                where q.lane = lane and q.line = '' and (q.place, q.id + 0) >= (due, next_id)
                  and q.place <= clock and q.due_at <= clock
                order by q.place, q.id + 0 limit 1);
            room := least(n, got::bigint + case when lines_first and bound is not null then 1 else lined_n end);
            for known in
                select l.key, l.until, greatest((room - got) / cardinality(lined), 1) as share from trunkline.{line_} l
                where l.lane = lane and l.until <= clock order by random()
            loop
                exit when got >= room or to_bury <= 0;
                known.share := least(known.share, room - got, most_of_key);
                at := trunkline.{do_gather_}(known.share, known.share, true, apart, '-infinity', 0, lane, known.key, '{}', coalesce(bound, clock), to_bury);
                to_bury := at.to_bury;
                if at.got > 0 then
                    -- In the meantime the key's first message may have failed. Then the key waits for its retry.
                    continue when exists (
                        select from trunkline.{line_} l where l.lane = lane and l.key = known.key and l.until > clock_timestamp());
                    foreach row_tid in array at.tids loop
                        tids := tids || row_tid; -- in place: a concatenation would copy all of them for each key
                    end loop;
                    got := got + at.got;
                    ran_out := at.ran_out;
                    exit when ran_out;
                    apart := greatest(way, 2);
                else
                    -- If the key's own backlog (line) is empty, the key uses the partition's backlog again. A retry
                    -- that fills the key's backlog locks it. The second statement sees what a retry has stored before
                    -- the lock.
                    perform from trunkline.{line_} l where l.lane = lane and l.key = known.key for update skip locked;
                    -- Above read committed, the snapshot may not show rows that have entered the backlog.
                    if found and current_setting('transaction_isolation') not in ('repeatable read', 'serializable') then
                        delete from trunkline.{line_} l
                        where l.lane = lane and l.key = known.key and l.until = known.until
                          and not exists (select from trunkline.{queue_} q where q.lane = lane and q.line = known.key);
                    end if;
                end if;
            end loop;
            exit when ran_out or part = 2;
            lined := array(select l.key from trunkline.{line_} l where l.lane = lane);
        else
            -- While keys wait, even a call for one message reads several rows: rows of such a key move
            -- to its backlog together.
            rows := case when lined = '{}' then least(wanted - got, 8) else 8 end;
            while got < wanted loop
                at := trunkline.{do_gather_}(wanted - got, rows, true, apart, due, next_id, lane, '', lined, 'infinity', to_bury);
                to_bury := at.to_bury;
                exit when at.got = 0;
                tids := tids || at.tids;
                got := got + at.got;
                ran_out := at.ran_out;
                exit when ran_out;
                apart := greatest(way, 2);
                select q.place, q.id + 1 into due, next_id from trunkline.{queue_} q where q.ctid = tids[cardinality(tids)];
                exit when not at.more;
                -- After a row that has to be split or moved, only as many rows are locked as could
                -- be used. Otherwise every such row would require reading all of them.
                rows := least(wanted - got, case when cardinality(at.tids) < rows then greatest(2 * cardinality(at.tids), 8) else 2 * rows end);
            end loop;
            exit when ran_out;
            if exists (select from trunkline.{line_} l where l.lane = lane and l.key not in (select u.key from unnest(lined) u(key))
                       and exists (select from trunkline.{queue_} q where q.ctid = any (tids) and l.key = any (q.keys))) then
                -- In the meantime a message of the key failed. Its retry is due before these
                -- messages, so the call returns none of them.
                tids := '{}';
                got := 0;
                return;
            end if;
        end if;
    end loop;
end $f$;
