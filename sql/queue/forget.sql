create or replace function trunkline.{do_forget_}(pages int)
    returns bigint language plpgsql security definer
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexscan = off set enable_indexonlyscan = off
    set enable_bitmapscan = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Deletes keys whose time has passed for more than a minute, in as many pages from a place at random on (null is all): where everybody who brings keys
-- reads a few, no more than about a quarter of the table is such keys, and no enqueue waits for what is dead elsewhere. Waits for no lock. With the owner's right to delete, for producers. Of queues with uniqueness.
#variable_conflict use_variable
declare
    before timestamptz := clock_timestamp() - interval '1 minute';
    whole bigint := pg_relation_size('trunkline.{unique_}'::regclass) / current_setting('block_size')::bigint;
    -- It may begin before the table, so that the first pages are met as often as the others.
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
