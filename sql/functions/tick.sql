create or replace function trunkline.tick(tids tid[], ticks timestamptz[]) returns setof bigint
    language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
    set lock_timeout = '1s' as $$
-- Enqueues the messages of ticks, for a session that has locked the schedules' rows. Messages of the same queue and
-- priority are enqueued together. Rows are found by their ctids, which costs the same no matter how many dead rows
-- surround them. If another session has locked a queue, the ticks of the other queues wait for at most a second.
declare
    q record;
begin
    for q in
        select s.queue, s.priority, array_agg(s.payload order by t.nr) as payloads,
               case when count(s.key) > 0 then array_agg(s.key order by t.nr) end as keys,
               array_agg(coalesce(s.metadata, '{}') || jsonb_build_object('schedule', s.name,
                   'tick', to_char(t.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) order by t.nr) as metadata
        from unnest(tids, ticks) with ordinality t(tid, at, nr) join trunkline.schedule s on s.ctid = t.tid
        group by s.queue, s.priority order by s.queue, s.priority desc
    loop
        return query execute format(
            'select * from trunkline.enqueue_many($1, trunkline.payloads_of($2, null::%s[]), interval ''0'', $3, $4, keys => $5)',
            format_type(trunkline.payload_type(q.queue), -1)) using q.queue, q.payloads::text[], q.metadata, q.priority, q.keys;
    end loop;
end $$;
