create or replace function trunkline.{do_along_}(
        n int, lane int, floor timestamptz, way int, lined_n int, out tids tid[], out got int, out ran_out bool)
    language plpgsql {planner} as $f$
-- Locks what may be leased of a lane that the caller holds, as many as n messages: first along the line of the lane, where those of keys that
-- have a line of their own are moved there; then along these, as far as the first line was seen: what is behind that could belong before it.
-- Another session that cuts rows of the lane, to cancel or reschedule, has its lock meanwhile, and then nothing is leased of it: a row that is passed over
-- because it was locked would come too late.
-- lined_n: messages of keys with lines of their own, at most. way: a message whose lease ran out comes alone (1) or not at all (2); or one that ran out
-- for the first time comes like the rest, and one that did so again last (3), because the caller keeps it apart, or not at all (4). Nothing comes behind it.
#variable_conflict use_variable
declare
    clock timestamptz;
    at record;
    known record;
    lined text[];
    wanted int := n;
    apart int := way;
    rows int;
    due timestamptz := floor;
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
        wanted := n - n / 4;
    end if;
    rows := least(wanted, 8);
    while got < wanted loop
        at := trunkline.{do_gather_}(wanted - got, rows, true, apart, due, next_id, lane, '', lined, 'infinity');
        exit when at.got = 0;
        tids := tids || at.tids;
        got := got + at.got;
        ran_out := at.ran_out;
        if ran_out then
            return;
        end if;
        apart := greatest(way, 2);
        select q.place, q.id + 1 into due, next_id from trunkline.{queue_} q where q.ctid = tids[cardinality(tids)];
        exit when not at.more;
        -- Behind a row that has to be cut or moved, no more rows are locked than were of use: else each of these would cost a look at all of them.
        rows := least(wanted - got, case when cardinality(at.tids) < rows then greatest(2 * cardinality(at.tids), 8) else 2 * rows end);
    end loop;
    if exists (select from trunkline.{line_} l where l.lane = lane and l.key <> all (lined)
               and exists (select from trunkline.{queue_} q where q.ctid = any (tids) and l.key = any (q.keys))) then
        -- Meanwhile a message of it failed, and is due again before these.
        tids := '{}';
        got := 0;
        return;
    elsif lined = '{}' then
        return;
    end if;
    clock := clock_timestamp();
    -- Rows of one statement have one place, so what stands at that of the first row that was not seen may come behind it.
    due := coalesce((
        select q.place - interval '1 microsecond' from trunkline.{queue_} q
        where q.lane = lane and q.line = '' and (q.place, q.id + 0) >= (due, next_id)
          and q.place <= clock and q.due_at <= clock
        order by q.place, q.id + 0 limit 1), clock);
    n := least(n, got + lined_n);
    for known in
        select l.key, l.until, greatest((n - got) / cardinality(lined), 1) as share from trunkline.{line_} l
        where l.lane = lane and l.until <= clock order by random()
    loop
        exit when got >= n;
        known.share := least(known.share, n - got{most_of_key});
        at := trunkline.{do_gather_}(known.share, known.share, true, apart, '-infinity', 0, lane, known.key, '{}', due);
        if at.got > 0 then
            tids := tids || at.tids;
            got := got + at.got;
            ran_out := at.ran_out;
            exit when ran_out;
            apart := greatest(way, 2);
        else
            -- Where its line is empty, the key goes along with the others again.
            delete from trunkline.{line_} l
            where l.lane = lane and l.key = known.key and l.until = known.until
              and not exists (select from trunkline.{queue_} q where q.lane = lane and q.line = known.key);
        end if;
    end loop;
end $f$;
