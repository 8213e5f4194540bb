create or replace function trunkline.{do_peek_}(after_due timestamptz, after_id bigint, n bigint)
    returns setof trunkline.{queue_} language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Reads a page of rows after a given row, in the order of the due times.
#variable_conflict use_variable
begin
    return query select q.* from trunkline.{queue_} q
        where (q.due_at, q.id + 0) > (after_due, after_id) order by q.due_at, q.id + 0 limit n;
end $f$;
