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
        -- Calls the queue's own function: arrays of some types, such as domains over text, fit
        -- several forms of trunkline.enqueue_many.
        perform trunkline.check_keys(q.queue, q.keys, cardinality(q.payloads));
        return query execute format(
            case when q.keys is not null then 'select * from trunkline.%I(trunkline.payloads_of($1, null::%s[]), $3, interval ''0'', $2)'
                 else 'select * from trunkline.%I(trunkline.payloads_of($1, null::%s[]), interval ''0'', $2%s)' end,
            case when q.keys is not null then 'do_keyed_' else 'do_batch_' end || q.queue, format_type(trunkline.payload_type(q.queue), -1),
            trunkline.check_priority(q.queue, q.priority)) using q.payloads::text[], q.metadata, q.keys;
    end loop;
end $$;
