create or replace function trunkline.enqueue(queue text, payload anyelement, delay interval default '0', metadata jsonb default null,
        priority int default 0, unique_key text default null, unique_for interval default null, replace bool default false,
        key text default null) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Enqueues a message of the payload's own type, in the caller's transaction, and returns its id. Waiting consumers are
-- woken at the commit.
--
-- delay: how long until the message is due. metadata: an object of names and string values that accompanies the
-- payload. priority: from 0, the lowest, in a queue with priorities. unique_key, unique_for, replace: as in
-- trunkline.enqueue_unique, which also returns what became of the message; if another message has the key, its id is
-- returned. key: the message's key, in a queue with keys.
--
-- Example:
--     select trunkline.enqueue('emails', jsonb_build_object('to', 'ada@example.org'));
declare
    id bigint;
begin
    if unique_key is not null then
        return (select u.id from trunkline.enqueue_unique(queue, payload, unique_key, unique_for, replace, delay, metadata, priority) u);
    end if;
    perform trunkline.check_queue(queue);
    if key is not null then
        perform trunkline.check_keys(queue, array[key], 1);
        execute format('select trunkline.%I(array[$1::%s], array[$2], $3, $4)', 'do_keyed_' || queue, format_type(trunkline.payload_type(queue), -1))
            into id using payload, key, delay, case when metadata is not null then array[metadata] end;
        return id;
    end if;
    execute format('select trunkline.%I(array[$1::%s], $2, $3%s)', 'do_batch_' || queue, format_type(trunkline.payload_type(queue), -1),
                   trunkline.check_priority(queue, priority))
        into id using payload, delay, case when metadata is not null then array[metadata] end;
    return id;
end $$;
