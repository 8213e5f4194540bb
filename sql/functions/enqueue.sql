create or replace function trunkline.enqueue(queue text, payload anyelement, delay interval default '0', metadata jsonb default null,
        priority int default 0, unique_key text default null, unique_for interval default null, replace bool default false,
        key text default null) returns bigint
    language plpgsql as $$
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
    if delay operator(pg_catalog.=) '0'::pg_catalog.interval and metadata is null and priority operator(pg_catalog.=) 0
       and unique_key is null and key is null and queue is not null then
        -- Without options the call is worth little more than the insert of a row. The setting of a search_path alone
        -- would be a tenth of it, so every name includes its schema.
        if pg_catalog.to_regproc(pg_catalog.format('trunkline.%I', 'do_enqueue_' operator(pg_catalog.||) queue)) is not null then
            execute pg_catalog.format('select trunkline.%I($1)', 'do_enqueue_' operator(pg_catalog.||) queue) into id using payload;
            return id;
        end if;
    end if;
    return trunkline.enqueue_one(queue, payload, delay, metadata, priority, unique_key, unique_for, replace, key);
end $$;
