create or replace function trunkline.enqueue_many(queue text, payloads text[], delay interval default '0', metadata jsonb[] default null,
        priority int default 0, unique_keys text[] default null, unique_for interval default null, replace bool default false,
        keys text[] default null)
    returns setof bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- With payloads text[]: each payload is written as text, and converted to the queue's type.
--
-- Example:
--     select * from trunkline.enqueue_many('emails', array['{"to": "eve@example.org"}', '{"to": "dan@example.org"}']);
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
            using errcode = 'array_subscript_error', hint = 'Pass one text for each payload.';
    end if;
    if keys is not null then
        perform trunkline.check_keys(queue, keys, cardinality(payloads)), trunkline.check_priority(queue, priority);
        return query execute format('select * from trunkline.%I(%s, $2, $3, $4)', 'do_keyed_' || queue, trunkline.converted(queue, '$1', true, payloads))
            using payloads, keys, delay, metadata;
        return;
    end if;
    return query execute format('select * from trunkline.%I(%s, $2, $3%s)', 'do_batch_' || queue, trunkline.converted(queue, '$1', true, payloads),
                                trunkline.check_priority(queue, priority))
        using payloads, delay, metadata;
end $$;
