create or replace function trunkline.claim_schedules(since timestamptz, n int)
    returns table (tid tid, name text, queue text, expression text, zone text, missed text, placed bool, next_at timestamptz, clock timestamptz)
    language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
-- Returns the schedules that are due now and that no other session has claimed. Locks them until the commit, so each
-- tick is made once. since: a time before which nothing is due, so that the scan skips the dead rows there.
#variable_conflict use_column
begin
    return query
        select s.ctid, s.name, s.queue, s.expression, s.zone, s.missed, s.placed, coalesce(s.owed_at, s.next_at), clock_timestamp()
        from trunkline.schedule s
        where not s.paused and s.next_at >= since and s.next_at <= clock_timestamp() order by s.next_at limit n for update skip locked;
end $$;
