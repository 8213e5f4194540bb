create or replace function trunkline.{do_within_}(first_id bigint, last_id bigint, due_from timestamptz, due_before timestamptz)
    returns table (id bigint, enqueued_at timestamptz, due_at timestamptz, attempt int, error text, payload {type}, metadata jsonb, priority int, key text)
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Returns the messages with ids and due times within bounds: along the ids if these have a bound, otherwise along the due times. A row lies within
-- one block of 1,024 ids.
#variable_conflict use_variable
begin
    if first_id > 0 or last_id < 9223372036854775807 then
        return query
            select q.id + m.k, q.enqueued_at, q.due_at, q.attempt, q.error, m.payload, m.metadata, 0, null::text
            from trunkline.{queue_} q,
                 lateral (select generate_series(0, q.size - 1) as k, unnest(q.payload) as payload, unnest(q.metadata) as metadata) m
            where q.id >= first_id / 1024 * 1024 and q.id <= last_id and q.id + m.k between first_id and last_id
              and q.due_at + interval '0' >= due_from and q.due_at + interval '0' < due_before; -- not along the due times
    else
        return query
            select m.id, m.enqueued_at, m.due_at, m.attempt, m.error, m.payload, m.metadata, m.priority, m.key
            from trunkline.{messages_} m where m.due_at >= due_from and m.due_at < due_before;
    end if;
end $f$;
