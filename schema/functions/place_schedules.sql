-- With the ticks, in their transaction: when the next ones are (infinity where there is none), and what went wrong.
create or replace function trunkline.place_schedules(tids tid[], nexts timestamptz[], lasts timestamptz[], problems text[]) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
begin
    update trunkline.schedule s set next_at = p.next_at, placed = true, last_at = coalesce(p.last_at, s.last_at), problem = p.problem
    from unnest(tids, nexts, lasts, problems) p(tid, next_at, last_at, problem) where s.ctid = p.tid;
end $$;
