create or replace function trunkline.enqueue_many_with_columns(queue text, payloads text[], columns jsonb, delay interval default '0',
        metadata jsonb[] default null, priority int default 0, keys text[] default null) returns setof bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Enqueues several messages, whose payloads are written as text, with the same values in columns that you added to the
-- queue's table. Returns their ids in order. The messages share rows.
--
-- columns: as in trunkline.enqueue_with_columns. delay, metadata, priority, keys: as in trunkline.enqueue_many.
--
-- Example:
--     select * from trunkline.enqueue_many_with_columns('emails', array['{"to": "gil@example.org"}', '{"to": "hal@example.org"}'],
--                                                       '{"tenant": "globex"}');
begin
    perform trunkline.check_queue(queue);
    return query execute format('select * from trunkline.enqueue_rows($1, %s, $3, $4, $5, $6, $7)', trunkline.converted(queue, '$2', true, payloads))
        using queue, payloads, columns, trunkline.due_of(delay), metadata, priority, keys;
end $$;
