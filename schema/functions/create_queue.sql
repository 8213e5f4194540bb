-- Creates a queue. Does nothing where it exists with the same settings.
--
-- queue: 1 to 48 characters: a lower-case letter, then a-z, 0-9, "_", "." or "-". payload: any type, jsonb or text for
-- most. max_attempts: deliveries before a message is a dead letter. lease: how long a lease lasts unless a consumer asks
-- for another. max_batch: messages a row, 1 to 1,024.
--
-- Example:
--     select trunkline.create_queue('emails', 'jsonb', max_attempts => 3, lease => '1 minute');
create or replace function trunkline.create_queue(
    queue text, payload regtype default 'bytea', max_attempts int default 10,
    lease interval default '30 seconds', max_batch int default 1024
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set standard_conforming_strings = on set client_min_messages = warning as $$
#variable_conflict use_variable
declare
    element text := format_type(payload, -1);
    plain bool := payload in ('bytea'::regtype, 'uuid'::regtype);
    tables text;
begin
    if queue is null or queue !~ '^[a-z][a-z0-9_.-]{0,47}$' then
        raise exception 'a queue cannot be named %', coalesce(quote_literal(queue), 'NULL')
            using errcode = 'invalid_name',
                  hint = 'A name has 1 to 48 characters: a lower-case letter, then a-z, 0-9, "_", "." or "-".';
    end if;
    if payload is null then
        raise exception 'the payload of queue % needs a type', quote_literal(queue)
            using errcode = 'null_value_not_allowed', hint = 'Pass a type: jsonb, text, bytea, int8';
    end if;
    if exists (select from pg_type t where t.oid = payload and t.typtype = 'p') then
        raise exception 'the payload of queue % cannot be of type %: no column can', quote_literal(queue), payload
            using errcode = 'invalid_parameter_value', hint = 'Pass the type of a column: jsonb, text, bytea, int8';
    end if;
    perform trunkline.check_settings(queue, max_attempts, lease, max_batch);
    perform trunkline.lock_queue(queue);
    if exists (select from trunkline.queue q where q.name = queue) then
        if exists (select from trunkline.queue q where q.name = queue and q.max_attempts = max_attempts
                   and q.lease = lease and q.max_batch = max_batch)
           and (trunkline.payload_type(queue) = payload or exists (
                select from pg_type t where t.oid = trunkline.payload_type(queue) and t.typbasetype = payload
                and t.typname = 'payload_' || queue)) then
            return;
        end if;
        raise exception 'queue % exists already, with payload % and other settings or another type',
            quote_literal(queue), trunkline.payload_type(queue)
            using errcode = 'duplicate_object',
                  hint = 'Change settings with trunkline.alter_queue; another payload type needs another queue.';
    end if;
    -- Postgres has no arrays of arrays, but it has arrays of domains over arrays.
    if exists (select from pg_type t where t.oid = payload and t.typelem <> 0 and t.typsubscript = 'array_subscript_handler'::regproc) then
        element := format('trunkline.%I', 'payload_' || queue);
        execute format('create domain %s as %s', element, format_type(payload, -1));
    end if;

    insert into trunkline.queue (name, max_attempts, lease, max_batch) values (queue, max_attempts, lease, max_batch);
    insert into trunkline.floor (queue) values (queue) on conflict do nothing;
    select t.text into strict tables from trunkline.template t where t.kind = 'tables';
    execute trunkline.fill(replace(tables, '{element}', element), queue);
    perform setval(format('trunkline.%I', 'id_' || queue), d.next_id, false) from trunkline.dropped d where d.queue = queue;

    -- Batches over 2 kB live in TOAST. Uncompressed they are written fastest; text and JSON gain more from lz4.
    if plain then
        execute format('alter table trunkline.%I alter payload set storage external', 'queue_' || queue);
    else
        begin
            execute format('alter table trunkline.%I alter payload set compression lz4', 'queue_' || queue);
        exception when feature_not_supported or invalid_parameter_value then
            execute format('alter table trunkline.%I alter payload set storage external', 'queue_' || queue);
        end;
    end if;
    -- The same names again and again: what is compressed is half as large.
    begin
        execute format('alter table trunkline.%I alter metadata set compression lz4', 'queue_' || queue);
    exception when feature_not_supported or invalid_parameter_value then
        null; -- by Postgres' own method, then
    end;
    perform trunkline.install_queue(queue);
end $$;
