-- Reads without taking: one line a message, in the order in which they are due. Reads the whole queue, whatever a condition
-- on it says: trunkline.find reads one message, and the view trunkline."messages_NAME" along the due times that are asked for.
--
-- Example:
--     select id, due_at, attempt, payload from trunkline.messages('emails') limit 10;
create or replace function trunkline.messages(queue text)
    returns table (id bigint, enqueued_at timestamptz, due_at timestamptz, attempt int, error text, payload text, metadata jsonb)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform trunkline.check_queue(queue);
    return query execute format(
        'select m.id, m.enqueued_at, m.due_at, m.attempt, m.error, m.payload::text, m.metadata from trunkline.%I m order by m.due_at, m.id',
        'messages_' || queue);
end $$;
