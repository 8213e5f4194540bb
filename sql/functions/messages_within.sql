create or replace function trunkline.messages_within(queue text, first_id bigint, last_id bigint, due_from timestamptz, due_before timestamptz)
    returns table (id bigint, enqueued_at timestamptz, due_at timestamptz, attempt int, error text, payload text, metadata jsonb,
                   priority int, key text)
    language plpgsql stable
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off as $$
-- Returns the messages with ids and due times within bounds: along the ids if these have a bound, otherwise along the
-- due times. A row lies within one block of 1,024 ids.
#variable_conflict use_variable
declare
    by_id text := $q$
        select q.id + m.k, q.enqueued_at, q.due_at, q.attempt, q.error, m.payload::text, m.metadata, %s, %s
        from trunkline.%I q,
             lateral (select generate_series(0, q.size - 1) as k, unnest(q.payload) as payload, unnest(q.metadata) as metadata) m
        where q.id >= $1 / 1024 * 1024 and q.id <= $2 and q.id + m.k between $1 and $2
          and q.due_at + interval '0' >= $3 and q.due_at + interval '0' < $4 $q$; -- not along the due times
    by_time text := $q$
        select m.id, m.enqueued_at, m.due_at, m.attempt, m.error, m.payload::text, m.metadata, m.priority, m.key
        from trunkline.%I m where m.due_at >= $1 and m.due_at < $2 $q$;
    now_is trunkline.queue;
begin
    if first_id > 0 or last_id < 9223372036854775807 then
        select * into now_is from trunkline.queue q where q.name = queue;
        return query execute format(by_id, case when now_is.priorities > 1 then 'q.lane::int' else '0' end,
                                    case when now_is.lanes > 0 then 'q.keys[m.k + 1]' else 'null::text' end, 'queue_' || queue)
            using first_id, last_id, due_from, due_before;
    else
        return query execute format(by_time, 'messages_' || queue) using due_from, due_before;
    end if;
end $$;
