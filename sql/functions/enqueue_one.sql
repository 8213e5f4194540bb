create or replace function trunkline.enqueue_one(queue text, payload anyelement, delay interval, metadata jsonb, priority int,
        unique_key text, unique_for interval, replace bool, key text) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Enqueues a message with any of the options of trunkline.enqueue, or fails with the reason why it
-- cannot.
#variable_conflict use_variable
declare
    id bigint;
    arguments text;
    texts text[];
    listed jsonb[];
    -- A payload from a table may be compressed, to 1/255 of its size at the least.
    fits bool := pg_column_size(payload) <= 262144;
begin
    if unique_key is not null then
        if key is not null then
            perform trunkline.check_queue(queue), trunkline.check_keys(queue, array[key], 1);
        end if;
        return (select u.id from trunkline.enqueue_unique(queue, payload, unique_key, unique_for, replace, delay, metadata, priority) u);
    end if;
    perform trunkline.check_queue(queue);
    if key is not null then
        texts := case when pg_typeof(payload) = 'text'::regtype then array[payload::text] end;
        perform trunkline.check_keys(queue, array[key], 1), trunkline.check_priority(queue, priority);
        execute format('select trunkline.%I(%s, array[$2], $3, $4)', 'do_keyed_' || queue, trunkline.converted(queue, '$1', false, texts))
            into id using payload, key, delay, case when metadata is not null then array[metadata] end;
        return id;
    end if;
    arguments := trunkline.check_priority(queue, priority);
    if not fits then
        -- An array holds its elements uncompressed: 64 MiB, a header of 4 bytes, and 24 of its own.
        fits := pg_column_size(array[payload]) <= 67108892;
    end if;
    if delay >= '0' and delay <= '36500 days' and fits then
        if metadata is not null then
            listed := array[trunkline.check_metadata(metadata)];
        end if;
        -- Branches for the queues, written by trunkline.build_dispatch.
        -- Other queues:
        if id is not null then
            perform pg_notify('trunkline.' || queue, '');
            return id;
        end if;
    end if;
    -- Handles queues without a branch, and arguments that must be refused. Checks the size first, which
    -- refuses a null payload: the cast of a null could fail with another error.
    perform trunkline.payload_bytes(queue, pg_column_size(payload));
    texts := case when pg_typeof(payload) = 'text'::regtype then array[payload::text] end;
    execute format('select trunkline.%I(%s, $2, $3%s)', 'do_batch_' || queue, trunkline.converted(queue, '$1', false, texts), arguments)
        into id using payload, delay, case when metadata is not null then array[metadata] end;
    return id;
end $$;
