create or replace function trunkline.{do_forget_}(pages int)
    returns bigint language plpgsql security definer
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexscan = off set enable_indexonlyscan = off
    set enable_bitmapscan = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Deletes keys that expired more than a minute ago. Reads a number of pages, starting at a random
-- place; null means all pages. Each session that enqueues keys reads a few pages. So at most about
-- a quarter of the table consists of such keys, and no enqueue waits for dead rows elsewhere. Waits
-- for no lock. Runs with the owner's right to delete, for producers. Only for queues with
-- uniqueness.
#variable_conflict use_variable
declare
    before timestamptz := clock_timestamp() - interval '1 minute';
    whole bigint := pg_relation_size('trunkline.{unique_}'::regclass) / current_setting('block_size')::bigint;
    -- The range may begin before the table's first page. Otherwise the first pages would be visited
    -- less often than the others.
    first bigint := case when pages is null then 0 else floor(random() * (whole + pages - 1))::bigint - pages + 1 end;
    low tid := format('(%s,0)', greatest(first, 0))::tid;
    high tid := format('(%s,0)', first + coalesce(pages, whole))::tid;
    tids tid[];
begin
    tids := array(select u.ctid from trunkline.{unique_} u
                  where u.ctid >= low and u.ctid < high and u.until < before for update skip locked);
    delete from trunkline.{unique_} u where u.ctid = any (tids);
    return coalesce(cardinality(tids), 0);
end $f$;
