create or replace function trunkline.{do_heads_}(n int, rows int, apart bool, floor timestamptz[],
        out due timestamptz, out id bigint, out tids tid[], out got int, out ran_out bool, out more bool)
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Handles the usual case of a queue with priorities in one statement: everything that is due in all
-- lanes can be handed out as it is, and contains at most n messages. Locks these rows and returns
-- where they are, in the order of their turns, as do_gather_ does. In any other case `more` is
-- true, and the caller gathers the rows lane by lane. Rows that other sessions have locked are
-- counted, but not waited for.
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
    head_start constant interval := {head_start};
    most int := rows + rows / 2 + 8;
    seen record;
begin
    tids := '{}';
    got := 0;
    ran_out := false;
    more := false;
    if {paused} then
        return;
    end if;
    with head as materialized (
        select h.*, greatest(h.due_at, '0001-01-01 00:00:00+00') - l.nr * head_start as rank
        from generate_series({lanes} - 1, 0, -1) l(nr), lateral (
            select q.ctid as tid, q.id, q.due_at, q.size, q.attempt,
                   q.attempt - q.released >= {max_attempts} or q.attempt > 0 and q.error is null and (q.size > 1 or apart) as awkward
            from trunkline.{queue_} q
            where q.lane = l.nr and (q.due_at, q.id + 0) >= (floor[l.nr + 1], 0) and q.due_at <= clock
            order by q.due_at, q.id + 0 limit most) h
        limit most -- limits all lanes together: if there are this many rows, not everything fits
    ), whole as materialized (
        select count(*) as seen, count(*) < most and sum(h.size) <= n and not bool_or(h.awkward) as fits from head h
    ), fitting as materialized (
        select h.* from head h, whole w where w.fits
    ), locked as materialized (
        select f.rank, f.id, q.ctid as tid, q.size
        from fitting f join trunkline.{queue_} q on q.ctid = f.tid
        where q.due_at = f.due_at and q.attempt = f.attempt and q.size = f.size
        for update of q skip locked
    )
    select array_agg(l.tid order by l.rank, l.id) as tids, sum(l.size) as got, (select w.seen > 0 and not w.fits from whole w) as more
    into seen from locked l;
    more := seen.more;
    if seen.got > 0 then
        tids := seen.tids;
        got := seen.got;
    end if;
end $f$;
