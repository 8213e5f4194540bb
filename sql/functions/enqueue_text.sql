create or replace function trunkline.enqueue(queue text, payload text, delay interval default '0', metadata jsonb default null,
        priority int default 0, unique_key text default null, unique_for interval default null, replace bool default false,
        key text default null) returns bigint
    language plpgsql as $$
-- Like the variant for a value of the queue's type, but takes the payload as text. A driver that leaves the type of a
-- parameter to the server calls this variant: cast the parameter, as in $2::bytea or $2::jsonb. In a queue of bytea, a
-- text that has a backslash is refused (22P02), unless it is in hex notation, such as '\x0aff'. Cast a value of type
-- "char" to text; otherwise the server cannot choose a variant (42725).
--
-- Example:
--     select trunkline.enqueue('emails', '{"to": "bob@example.org"}', delay => '10 minutes', metadata => '{"tenant": "acme"}');
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
