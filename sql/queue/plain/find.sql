create or replace function trunkline.{do_find_}(message bigint)
    returns table (state text, attempt int, due_at timestamptz, ended_at timestamptz, enqueued_at timestamptz, error text,
                   payload {type}, metadata jsonb, priority int, key text)
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Returns one message from whichever table contains it, in one snapshot. A row lies within one
-- block of 1,024 ids. So only the last row that begins at or before the id can contain it, and the
-- index is read backwards within that block at most.
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    return query select f.* from (
        select case when q.due_at <= clock then 'due' when q.error is not null then 'retrying'
                    when q.attempt = 0 then 'delayed' else 'leased' end,
               q.attempt, q.due_at, null::timestamptz, q.enqueued_at, q.error,
               q.payload[(message - q.id)::int + 1], q.metadata[(message - q.id)::int + 1], 0, null::text
        from (select r.* from trunkline.{queue_} r
              where r.id <= message and r.id >= message / 1024 * 1024 order by r.id desc limit 1) q
        where message - q.id < q.size
        union all
        select 'dead', q.attempt, null::timestamptz, q.dead_at, q.enqueued_at, q.error, q.payload, q.metadata,
               0, null::text
        from trunkline.{dead_} q where q.id = message
        union all
        select 'archived', q.attempt, null::timestamptz, q.archived_at, q.enqueued_at, null::text, q.payload, q.metadata,
               0, null::text
        from trunkline.{archive_} q where q.id = message
    ) f limit 1;
end $f$;
