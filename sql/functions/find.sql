create or replace function trunkline.find(queue text, id bigint)
    returns table (state text, attempt int, due_at timestamptz, ended_at timestamptz, enqueued_at timestamptz, error text,
                   payload text, metadata jsonb, priority int, key text)
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Finds one message by its id; no row where there is none (any more). Costs the same whatever the queue holds.
--
-- state: 'due', 'delayed', 'retrying' (it failed, or was given back, and is not due yet), 'leased', 'dead' or 'archived'.
-- due_at: when it may be dequeued (next); for a lease when it ends; null for what is dead or archived. ended_at: when it
-- died or was archived. attempt: deliveries so far; for what is dead or archived those that were charged. error: what the
-- last attempt said. priority: 0 also where the queue has none; key: null there.
--
-- Example:
--     select state, attempt, due_at, error from trunkline.find('emails', 2048);
begin
    perform trunkline.check_queue(queue);
    return query execute format(
        'select f.state, f.attempt, f.due_at, f.ended_at, f.enqueued_at, f.error, f.payload::text, f.metadata, f.priority, f.key from trunkline.%I($1) f',
        'do_find_' || queue) using id;
end $$;
