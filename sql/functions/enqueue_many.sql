create or replace function trunkline.enqueue_many(queue text, payloads anyarray, delay interval default '0', metadata jsonb[] default null,
        priority int default 0, unique_keys text[] default null, unique_for interval default null, replace bool default false,
        keys text[] default null)
    returns setof bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Enqueues several messages whose payloads are passed as values of the queue's type. A row gets up to the queue's
-- max_batch of them. Returns their ids in order. An empty array enqueues nothing.
--
-- metadata: one object for each payload, null for a message without metadata.
-- priority: the priority of all the messages. unique_keys: one for each payload, null for a message without a unique
-- key; see trunkline.enqueue_unique. keys: one for each payload, in a queue with keys.
--
-- Example:
--     select * from trunkline.enqueue_many(
--         'emails', array(select jsonb_build_object('to', n || '@example.org') from generate_series(1, 100) n));
begin
    if unique_keys is not null then
        if keys is not null then
            perform trunkline.check_queue(queue), trunkline.check_keys(queue, keys, cardinality(payloads));
        end if;
        return query select u.id from trunkline.enqueue_unique_many(queue, payloads, unique_keys, unique_for, replace, delay, metadata, priority) u;
        return;
    end if;
    perform trunkline.check_queue(queue);
    if array_ndims(payloads) > 1 then
        raise exception 'the payloads must be an array of one dimension, not of %', array_ndims(payloads)
            using errcode = 'array_subscript_error',
                  hint = 'Pass an array of one dimension. Payloads that are arrays themselves are passed as texts: array[''{1,2}'', ''{3}''].';
    end if;
    if keys is not null then
        perform trunkline.check_keys(queue, keys, cardinality(payloads)), trunkline.check_priority(queue, priority);
        return query execute format('select * from trunkline.%I(%s, $2, $3, $4)', 'do_keyed_' || queue, trunkline.converted(queue, '$1', true))
            using payloads, keys, delay, metadata;
        return;
    end if;
    return query execute format('select * from trunkline.%I(%s, $2, $3%s)', 'do_batch_' || queue, trunkline.converted(queue, '$1', true),
                                trunkline.check_priority(queue, priority))
        using payloads, delay, metadata;
end $$;
