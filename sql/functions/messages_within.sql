create or replace function trunkline.messages_within(
        queue text, first_id bigint, last_id bigint, due_from timestamptz, due_before timestamptz)
    returns table (id bigint, enqueued_at timestamptz, due_at timestamptz, attempt int, error text, payload text, metadata jsonb,
                   priority int, key text)
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off as $$
-- Returns the messages with ids and due times within bounds, in no order; a null is no bound. Uses
-- the index on ids if the ids have a bound, otherwise the index on due times. A row lies within one
-- block of 1,024 ids.
declare
    settings trunkline.queue := (select q from trunkline.queue q where q.name = queue);
begin
    return query execute format(
        'select q.id + m.k, q.enqueued_at, q.due_at, q.attempt, q.error, m.payload::text, m.metadata, %s, %s from trunkline.%I q,
              lateral (select generate_series(0, q.size - 1) as k, unnest(q.payload) as payload, unnest(q.metadata) as metadata) m
         where ' || case when coalesce(first_id, last_id) is null then 'q.due_at >= $3 and q.due_at < $4'
                         -- `+ interval '0'` keeps the planner off the index on due times.
                         else 'q.id >= $1 / 1024 * 1024 and q.id <= $2 and q.id + m.k between $1 and $2
                               and q.due_at + interval ''0'' >= $3 and q.due_at + interval ''0'' < $4' end,
        case when settings.priorities > 1 then 'q.lane::int' else '0' end,
        case when settings.lanes > 0 then 'q.keys[m.k + 1]' else 'null::text' end,
        'queue_' || queue)
        using coalesce(first_id, 0), coalesce(last_id, 9223372036854775807), coalesce(due_from, '-infinity'), coalesce(due_before, 'infinity');
end $$;
