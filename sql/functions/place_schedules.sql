create or replace function trunkline.place_schedules(tids tid[], nexts timestamptz[], lasts timestamptz[], problems text[]) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
-- Records when the next ticks are, and what went wrong, in the transaction that makes the current ticks. A schedule
-- without further ticks gets infinity. If the process cannot read the expression, the next tick is unknown, and the
-- schedule is due again in an hour: another process may be able to read it.
begin
    update trunkline.schedule s
    set next_at = case when p.next_at = 'infinity' and p.problem is not null then clock_timestamp() + interval '1 hour' else p.next_at end,
        placed = p.next_at < 'infinity' or p.problem is null, placed_at = clock_timestamp(), owed_at = null,
        last_at = coalesce(p.last_at, s.last_at), problem = p.problem
    from unnest(tids, nexts, lasts, problems) p(tid, next_at, last_at, problem) where s.ctid = p.tid;
end $$;
