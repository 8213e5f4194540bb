create or replace function trunkline.{do_wrong_}()
    returns bool language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Returns whether one of the messages that are due last has a time that only a clock that was ahead
-- can have written. do_right_ repairs such times. A message that another session has just committed
-- may be younger than the clock that was read before the query.
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    return exists (
        select from (
            select q.enqueued_at, q.due_at, q.attempt > 0 and q.error is null as is_leased from trunkline.{queue_} q
            where q.due_at > clock + {lease} + interval '1 minute' order by q.due_at desc, q.id + 0 desc limit 8) m
        where m.enqueued_at > clock_timestamp() + interval '1 s' or m.is_leased and m.due_at > clock + interval '8808 hours' * 1.5);
end $f$;
