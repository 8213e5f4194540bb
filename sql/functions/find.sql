create or replace function trunkline.find(queue text, id bigint)
    returns table (state text, attempt int, due_at timestamptz, ended_at timestamptz, enqueued_at timestamptz, error text,
                   payload text, metadata jsonb, priority int, key text)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Finds one message by its id. Returns no row if the message does not exist or no longer exists.
-- The cost does not depend on the number of messages in the queue.
--
-- state: 'due', 'delayed', 'retrying' (it failed, or was released, and is not due yet), 'leased', 'dead' or 'archived'.
-- due_at: when the message may next be dequeued; for a leased message, when the lease ends; null if the message is dead
-- or archived. ended_at: when the message died or was archived. attempt: the number of deliveries so far; if the
-- message is dead or archived, the number of attempts that count. error: the error of the last attempt.
-- priority: 0 if the queue has no priorities. key: null if the queue has no keys.
--
-- Example:
--     select state, attempt, due_at, error from trunkline.find('emails', 2048);
begin
    perform trunkline.check_queue(queue);
    return query execute format(
        'select f.state, f.attempt, f.due_at, f.ended_at, f.enqueued_at, f.error, f.payload::text, f.metadata, f.priority, f.key from trunkline.%I($1) f',
        'do_find_' || queue) using id;
end $$;
