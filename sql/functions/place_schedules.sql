create or replace function trunkline.place_schedules(tids tid[], nexts timestamptz[], lasts timestamptz[], problems text[]) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
-- Records when the next ticks are, and what went wrong, in the transaction that makes the current ticks. A schedule
-- without further ticks gets infinity, and is due again in an hour if that is a problem. If the process cannot read the
-- schedule, its next tick is null: the tick stays owed. The schedule then stays due for two seconds, in which another
-- process may make the tick, and afterwards is tried again after a pause that grows from a second to a minute.
-- now() is the clock at which the transaction began: if the clock was set back since, the next ticks are of the time before,
-- and right_schedules has to find them.
begin
    update trunkline.schedule s
    set next_at = case when p.next_at is null
                       then clock_timestamp() + least(greatest(clock_timestamp() - coalesce(s.owed_at, s.next_at), interval '1 second'), interval '1 minute')
                       when p.next_at = 'infinity' and p.problem is not null then clock_timestamp() + interval '1 hour' else p.next_at end,
        placed = case when p.next_at is null then s.placed else p.next_at < 'infinity' or p.problem is null end,
        placed_at = greatest(clock_timestamp(), now()), owed_at = case when p.next_at is null then coalesce(s.owed_at, s.next_at) end,
        last_at = coalesce(p.last_at, s.last_at), problem = p.problem
    from unnest(tids, nexts, lasts, problems) p(tid, next_at, last_at, problem)
    where s.ctid = p.tid and (p.next_at is not null or s.next_at < clock_timestamp() - interval '2 seconds');
end $$;
