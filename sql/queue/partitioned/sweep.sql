create or replace function trunkline.{do_sweep_}(floor timestamptz, page bigint)
    returns table (stray timestamptz, next_page bigint, cost float8) language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Finds the oldest row below the floor, put there by a clock that stepped back or by a manual
-- change; null if there is none. Also lowers the floors of partitions, which all sessions share, to
-- such rows. If few rows are dead, the index answers immediately. Otherwise an index scan would
-- walk over all dead rows. So the function reads a few pages of the table, and the next sweep
-- continues after them. No caller waits long for a sweep, no matter how many rows are dead. If the
-- first page is null, the caller sweeps only once. The sweep then starts at a random page, so that
-- all such callers together read the whole table.
#variable_conflict use_variable
declare
    pages constant int := 64;
    began timestamptz := clock_timestamp();
begin
    if coalesce(page, 0) = 0 and pg_stat_get_dead_tuples('trunkline.{queue_}'::regclass) < 5000 then
        select q.due_at into stray from trunkline.{queue_} q order by q.due_at, q.id + 0 limit 1;
        stray := case when stray < floor then stray end;
        next_page := 0;
        perform trunkline.{do_lower_}(null, null);
    else
        page := coalesce(page, (floor(random() * (pg_relation_size('trunkline.{queue_}'::regclass)
                                                  / current_setting('block_size')::bigint) / pages) * pages)::bigint);
        stray := trunkline.{do_stray_}(floor, format('(%s,0)', page)::tid, format('(%s,0)', page + pages)::tid);
        perform trunkline.{do_lower_}(format('(%s,0)', page)::tid, format('(%s,0)', page + pages)::tid);
        next_page := case when (page + pages) * current_setting('block_size')::bigint
                               < pg_relation_size('trunkline.{queue_}'::regclass) then page + pages else 0 end;
    end if;
    cost := extract(epoch from clock_timestamp() - began);
    return next;
end $f$;
