create or replace function trunkline.create_queue(
    queue text, payload regtype default 'bytea', max_attempts int default 10,
    lease interval default '30 seconds', max_batch int default 1024, priorities int default 1, aging interval default '1 minute',
    uniqueness bool default false, partitions int default 0, per_key int default 1
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set standard_conforming_strings = on set client_min_messages = warning as $$
-- Creates a queue. Does nothing if the queue exists with the same settings.
--
-- queue: the name, of 1 to 48 characters: a lower-case letter, then a-z, 0-9, "_", "." or "-". payload: any type; jsonb
-- or text suits most queues. max_attempts: the number of deliveries after which a message becomes a dead letter. lease:
-- how long a lease lasts unless the consumer asks for another duration. max_batch: the maximum number of messages per
-- row, 1 to 1,024. priorities: the number of priorities, 1 to 10; they are numbered from 0, the lowest. It cannot be
-- changed later. aging: the age that one step of priority is worth. Each due message counts as older by this much for
-- each step of its priority, and the oldest goes first, to within a sixteenth of aging. So a message of the lowest
-- priority waits only for messages that came at most this long after it, for each step between them. 36500 days makes
-- priorities strict: the highest always goes first. uniqueness: whether messages may have unique keys (see
-- trunkline.enqueue); it cannot be changed later. partitions: 1 to 256 if each message has a key, 0 if messages have
-- none. 64 suits most queues; the number can be increased later (see trunkline.alter_queue). per_key: how many messages
-- of one key are handled at a time, at most. If it is 1, messages of a key are handled one after another, in the order
-- in which they are due. See trunkline.lease_partition.
--
-- Example:
--     select trunkline.create_queue('emails', 'jsonb', max_attempts => 3, lease => '1 minute');
#variable_conflict use_variable
declare
    element text := format_type(payload, -1);
    plain bool := payload in ('bytea'::regtype, 'uuid'::regtype);
    parts text[];
    tables text;
    triggers text;
    old trunkline.queue;
    kind regtype;
    differences text[];
begin
    if queue is null or queue !~ '^[a-z][a-z0-9_.-]{0,47}$' then
        raise exception 'a queue cannot be named %', coalesce(quote_literal(queue), 'NULL')
            using errcode = 'invalid_name',
                  hint = 'A name has 1 to 48 characters: a lower-case letter, then a-z, 0-9, "_", "." or "-".';
    end if;
    if payload is null then
        raise exception 'the payload type of queue % must not be null', quote_literal(queue)
            using errcode = 'null_value_not_allowed', hint = 'Pass a type, such as jsonb, text, bytea or int8.';
    end if;
    if exists (select from pg_type t where t.oid = payload and t.typtype = 'p') then
        raise exception 'queue % cannot have payloads of type %, which no column can have', quote_literal(queue), payload
            using errcode = 'invalid_parameter_value', hint = 'Pass a type that a column can have, such as jsonb, text, bytea or int8.';
    end if;
    perform trunkline.check_settings(queue, max_attempts, lease, max_batch, priorities, aging, partitions, per_key);
    if uniqueness and partitions > 0 then
        raise exception 'queue % cannot have both keys and unique keys', quote_literal(queue)
            using errcode = 'invalid_parameter_value', hint = 'Set either partitions or uniqueness, or create two queues.';
    end if;
    perform trunkline.lock_queue(queue);
    insert into trunkline.queue (name, max_attempts, lease, max_batch, priorities, head_start, uniqueness, lanes, per_key)
    values (queue, max_attempts, lease, max_batch, priorities, aging, coalesce(uniqueness, false), partitions, per_key)
    on conflict on constraint pk_queue do nothing;
    if not found then
        select * into old from trunkline.queue q where q.name = queue;
        -- Not in the query: its planner would call the function with an older snapshot, without the
        -- queue that another session has just created.
        kind := trunkline.payload_type(queue);
        select array_agg(format('%s is %s, not %s', d.setting, d.has, d.asked)) into differences
        from (values ('payload', coalesce(kind::text, 'of a type that was dropped'), payload::text,
                      kind = payload or exists (
                          select from pg_type t where t.oid = kind and t.typbasetype = payload
                          and t.typname = 'payload_' || queue)),
                     ('max_attempts', old.max_attempts::text, max_attempts::text, old.max_attempts = max_attempts),
                     ('lease', old.lease::text, lease::text, old.lease = lease),
                     ('max_batch', old.max_batch::text, max_batch::text, old.max_batch = max_batch),
                     ('priorities', old.priorities::text, priorities::text, old.priorities = priorities),
                     ('aging', old.head_start::text, aging::text, old.head_start = aging),
                     ('uniqueness', old.uniqueness::text, coalesce(uniqueness, false)::text, old.uniqueness = coalesce(uniqueness, false)),
                     ('partitions', old.lanes::text, partitions::text, old.lanes = partitions),
                     ('per_key', old.per_key::text, per_key::text, old.per_key = per_key)) d(setting, has, asked, is_same)
        where d.is_same is not true;
        if differences is null then
            return;
        end if;
        raise exception 'queue % already exists with other settings: %', quote_literal(queue), array_to_string(differences, '; ')
            using errcode = 'duplicate_object',
                  hint = 'Change settings with trunkline.alter_queue. The payload type, priorities and uniqueness cannot be changed, and a queue without keys cannot get partitions.';
    end if;
    if exists (select from pg_type t
               where t.oid = trunkline.base_type(payload) and trunkline.base_type(case when trunkline.is_array(payload) then t.typelem else t.oid end)
                     in ('name'::regtype, '"char"'::regtype) and payload not in ('name'::regtype, '"char"'::regtype)) then
        raise exception 'queue % cannot have payloads of type %, because PostgreSQL shortens values of names without an error', quote_literal(queue), payload
            using errcode = 'invalid_parameter_value', hint = 'Pass text or text[].';
    end if;
    perform trunkline.check_owner();
    -- Postgres has no arrays of arrays, but it has arrays of domains over arrays.
    if exists (select from pg_type t where t.oid = payload and t.typelem <> 0 and t.typsubscript = 'array_subscript_handler'::regproc) then
        element := format('trunkline.%I', 'payload_' || queue);
        execute format('create domain %s as %s', element, format_type(payload, -1));
    end if;

    insert into trunkline.floor (queue) values (queue) on conflict do nothing;
    parts := trunkline.parts_of(queue);
    select string_agg(t.text, E'\n' order by array_position(parts, t.part)) into tables
    from trunkline.template t where t.part = any (parts) and t.name = 'tables';
    execute trunkline.fill(tables, queue, element);
    perform setval(format('trunkline.%I', 'id_' || queue), d.next_id, false) from trunkline.dropped d where d.queue = queue;

    -- Postgres stores batches over 2 kB in TOAST. It writes them fastest if they are not
    -- compressed, but text and JSON gain more from lz4.
    if plain then
        execute format('alter table trunkline.%I alter payload set storage external', 'queue_' || queue);
    else
        begin
            execute format('alter table trunkline.%I alter payload set compression lz4', 'queue_' || queue);
        exception when feature_not_supported or invalid_parameter_value then
            execute format('alter table trunkline.%I alter payload set storage external', 'queue_' || queue);
        end;
    end if;
    -- The same names recur in the metadata of many messages, so compression halves its size.
    begin
        execute format('alter table trunkline.%I alter metadata set compression lz4', 'queue_' || queue);
    exception when feature_not_supported or invalid_parameter_value then
        null; -- then Postgres' default compression is used
    end;
    perform trunkline.install_queue(queue);
    for triggers in select t.text from trunkline.template t where t.part = any (parts) and t.name = 'triggers' loop
        execute trunkline.fill(triggers, queue);
    end loop;
    -- Waits for at most half a second: after a second the server would look for deadlocks.
    perform trunkline.build_dispatch('500ms');
end $$;
