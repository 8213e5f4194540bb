create or replace function trunkline.enqueue_unique(queue text, payload anyelement, unique_key text, unique_for interval default null,
        replace bool default false, delay interval default '0', metadata jsonb default null, priority int default 0,
        out id bigint, out outcome text)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Enqueues a message unless another message has its unique key; the queue must have been created with uniqueness.
-- Returns the id of the message that has the key now, and the outcome: 'new'; 'duplicate' if another message has the
-- key; or 'replaced' if that other message now has this payload, metadata and due time.
--
-- unique_key: 1 to 1,024 bytes. unique_for: how long from now the key stays reserved, whatever becomes of this message;
-- more than zero and at most 36500 days. Null reserves the key until this message has ended (acknowledged, archived,
-- taken, dead, cancelled or purged): the key is free at the commit that ends the message. replace: whether this message
-- replaces a waiting message with the same key, which keeps its id, attempts, priority and the time of its key. A
-- message that is leased is not replaced, nor is one that another transaction keeps locked for more than a tenth of a
-- second. To replace messages, a role needs the rights of a consumer. delay, metadata, priority: as in
-- trunkline.enqueue.
--
-- If another transaction has claimed the key, the call waits until that transaction ends. A transaction that enqueues
-- several messages with unique keys should do so in the order of the keys, or with one call of
-- trunkline.enqueue_unique_many: otherwise two such transactions can deadlock. A transaction that is
-- repeatable read or serializable fails with 40001 if it would depend on a row that it cannot see.
--
-- Example:
--     select trunkline.create_queue('reports', 'jsonb', uniqueness => true);
--     select id, outcome from trunkline.enqueue_unique('reports', jsonb_build_object('of', 'acme'), 'acme', unique_for => '1 hour');
begin
    perform trunkline.check_queue(queue);
    perform trunkline.check_unique_key(unique_key), trunkline.check_priority(queue, priority), trunkline.check_unique(queue, 1, array[metadata], array[unique_key], unique_for);
    execute format('select u.id, (array[''new'', ''duplicate'', ''replaced''])[u.outcome + 1]
                    from trunkline.%I(%s, array[$2], array[$3], array[$4], array[$5], array[$6], array[$7]) u',
                   'do_unique_' || queue, trunkline.converted(queue, '$1', false))
        into id, outcome
        using payload, trunkline.due_of(delay), metadata, priority, unique_key, extract(epoch from unique_for)::float8, coalesce(replace, false);
end $$;
