create or replace function trunkline.enqueue(queue text, payload anyelement, delay interval default '0', metadata jsonb default null,
        priority int default 0, unique_key text default null, unique_for interval default null, replace bool default false,
        key text default null) returns bigint
    language plpgsql as $$
-- Enqueues a message whose payload is passed as a value of the queue's type, in the caller's transaction, and returns
-- its id. Waiting consumers are woken at the commit.
--
-- delay: how long until the message is due. metadata: an object of names and string values that
-- accompanies the payload. priority: from 0, the lowest, in a queue with priorities. unique_key,
-- unique_for, replace: as in trunkline.enqueue_unique, which also returns the outcome. If another
-- message has the key, the function returns the id of that message. Without a unique_key,
-- unique_for and replace have no effect. key: the message's key, in a queue with keys.
--
-- Example:
--     select trunkline.enqueue('emails', jsonb_build_object('to', 'ada@example.org'));
declare
    id pg_catalog.int8;
begin
    -- Without options, the call is little more than the insert of a row. Setting a search_path
    -- would add ten percent to its cost, so every name includes its schema. A payload from a table
    -- may be compressed, to 1/255 of its size at the least. So it has at most 64 MiB if it passes.
    if delay operator(pg_catalog.=) '0'::pg_catalog.interval and metadata is null and priority operator(pg_catalog.=) 0
       and unique_key is null and key is null and pg_catalog.pg_column_size(payload) operator(pg_catalog.<=) 262144 then
        -- Branches for the queues, written by trunkline.build_dispatch.
        -- Other queues:
        if id is not null then
            perform pg_catalog.pg_notify('trunkline.' operator(pg_catalog.||) queue, '');
            return id;
        end if;
    end if;
    -- Reports also why a payload or a row was refused.
    return trunkline.enqueue_one(queue, payload, delay, metadata, priority, unique_key, unique_for, replace, key);
end $$;
