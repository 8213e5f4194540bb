create or replace function trunkline.{do_turn_}(dues timestamptz[], ids bigint[], out lane int, out bound timestamptz)
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Chooses the lane whose turn it is: the one whose first row is the oldest, after subtracting the
-- aging for each step of priority. bound is the due time up to which the lane stays in front, plus
-- a sixteenth of the aging. Without this addition, the caller would fetch the rows of two lanes one
-- by one. Both results are null if nothing is due at or after these places. Only for queues with
-- priorities.
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
    head_start constant interval := {head_start};
    head record;
    rank timestamptz;
    second timestamptz;
begin
    for head in
        select l.nr, greatest(o.due_at, '0001-01-01 00:00:00+00') - l.nr * head_start as rank
        from generate_series({lanes} - 1, 0, -1) l(nr),
             lateral (select q.due_at from trunkline.{queue_} q
                      where q.lane = l.nr and (q.due_at, q.id + 0) >= (dues[l.nr + 1], ids[l.nr + 1]) and q.due_at <= clock
                      order by q.due_at, q.id + 0 limit 1) o
    loop
        if rank is null or head.rank < rank then
            second := rank;
            rank := head.rank;
            lane := head.nr;
        else
            second := least(second, head.rank);
        end if;
    end loop;
    bound := least(clock, second + lane * head_start + head_start / 16);
end $f$;
