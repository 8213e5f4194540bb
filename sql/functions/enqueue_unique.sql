create or replace function trunkline.enqueue_unique(queue text, payload anyelement, unique_key text, unique_for interval default null,
        replace bool default false, delay interval default '0', metadata jsonb default null, priority int default 0,
        out id bigint, out outcome text)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Enqueues a message, unless another has its unique key, in a queue that was created with uniqueness. Returns the id, of the one that is there, and
-- the outcome: 'new'; 'duplicate', where another has the key; or 'replaced', where that one has this payload, metadata and due time now.
--
-- unique_key: 1 to 1,024 bytes. unique_for: for how long from now no other message gets the key, whatever becomes of this one; more than
-- zero, at most 36500 days; null is until this message has ended (acknowledged, archived, taken, dead, cancelled, purged): at the commit of
-- that, the key is free. replace: whether a message that waits is replaced by this one (its id, attempts and priority stay, and the time of its key); one that is
-- leased is not, nor one that another transaction has locked for longer than a tenth of a second. It needs the rights of a consumer. delay, metadata,
-- priority: as of trunkline.enqueue.
--
-- Where another transaction has claimed the key, this waits for its end. A transaction that enqueues several messages with keys does so in the order
-- of the keys, or by one call of trunkline.enqueue_unique_many: two that wait for each other are a deadlock. A transaction that is repeatable read or
-- serializable errs with 40001 where it would have to see what it cannot.
--
-- Example:
--     select trunkline.create_queue('reports', 'jsonb', uniqueness => true);
--     select id, outcome from trunkline.enqueue_unique('reports', jsonb_build_object('of', 'acme'), 'acme', unique_for => '1 hour');
begin
    perform trunkline.check_queue(queue);
    perform trunkline.check_priority(queue, priority), trunkline.check_unique(queue, 1, array[metadata], array[unique_key], unique_for);
    execute format('select u.id, (array[''new'', ''duplicate'', ''replaced''])[u.outcome + 1]
                    from trunkline.%I(array[$1::%s], array[$2], array[$3], array[$4], array[$5], array[$6], array[$7]) u',
                   'do_unique_' || queue, format_type(trunkline.payload_type(queue), -1))
        into id, outcome
        using payload, trunkline.due_of(delay), metadata, priority, unique_key, extract(epoch from unique_for)::float8, coalesce(replace, false);
end $$;
