create or replace function trunkline.messages(
        queue text, first_id bigint default null, last_id bigint default null,
        due_from timestamptz default null, due_before timestamptz default null)
    returns table (id bigint, enqueued_at timestamptz, due_at timestamptz, attempt int, error text, payload text, metadata jsonb,
                   priority int, key text)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Reads messages without taking them: one row per message, in the order in which they are due. With bounds, the
-- function reads only the messages within them, along an index. Without bounds, or with only a condition outside the
-- call, it reads the whole queue.
--
-- first_id, last_id: a range of ids, both ends included. due_from, due_before: a range of due times, the end excluded.
-- Null means no bound. priority: 0 if the queue has no priorities. key: null if the queue has no keys.
--
-- Example:
--     select id, due_at, attempt, payload from trunkline.messages('emails') limit 10;
--     select id, payload from trunkline.messages('emails', due_before => now() + interval '1 hour');
begin
    perform trunkline.check_queue(queue);
    if coalesce(first_id, last_id) is not null or coalesce(due_from, due_before) is not null then
        return query select m.* from trunkline.messages_within(queue, first_id, last_id, due_from, due_before) m order by m.due_at, m.id;
    else
        return query execute format(
            'select m.id, m.enqueued_at, m.due_at, m.attempt, m.error, m.payload::text, m.metadata, m.priority, m.key
             from trunkline.%I m order by m.due_at, m.id', 'messages_' || queue);
    end if;
end $$;
