-- Messages carry metadata: JSON objects beside the payloads, element for element, so that every piece of a row takes its own along. The
-- column is null where no message of the row has any, and may end before the row does.

-- Only for this step: says some of a function anew. What is not found there is an error, and not silently left as it was.
create function trunkline.rewrite(routine regprocedure, variadic parts text[]) returns void
    language plpgsql as $$
declare
    text_of text := pg_get_functiondef(routine);
begin
    for part in 1..cardinality(parts) by 2 loop
        if strpos(text_of, parts[part]) = 0 then
            raise exception 'function % does not say: %', routine, parts[part];
        end if;
        text_of := replace(text_of, parts[part], parts[part + 1]);
    end loop;
    execute text_of;
end $$;

-- The metadata of a message, if it is metadata. None is none.
create function trunkline.check_metadata(metadata jsonb) returns jsonb
    language plpgsql immutable as $$
begin
    if jsonb_typeof(metadata) <> 'object' then
        raise exception 'metadata is an object, not %', metadata using errcode = 'invalid_parameter_value',
            hint = 'Pass names and texts, as in {"traceparent": "00-…"}, or null for none.';
    elsif length(metadata::text) > 16384 then
        raise exception 'metadata of % characters is too large', length(metadata::text) using errcode = 'program_limit_exceeded',
            hint = 'The metadata of a message has at most 16,384 characters. Put what is larger into the payload.';
    end if;
    return metadata;
end $$;

-- The columns and the view of one queue.
create function trunkline.add_metadata(queue text) returns void
    language plpgsql as $$
declare
    owner text;
begin
    foreach owner in array array['queue_', 'dead_', 'archive_'] loop
        if exists (select from pg_attribute a where a.attrelid = format('trunkline.%I', owner || queue)::regclass
                   and a.attname = 'metadata' and not a.attisdropped) then
            raise exception 'trunkline.% has a column "metadata" already', owner || queue using errcode = 'duplicate_column',
                hint = 'Trunkline needs that name from now on. Rename your column, then migrate again.';
        end if;
        execute format('alter table trunkline.%I add metadata jsonb%s', owner || queue, case owner when 'queue_' then '[]' end);
    end loop;
    -- The same names again and again: what is compressed is half as large.
    begin
        execute format('alter table trunkline.%I alter metadata set compression lz4', 'queue_' || queue);
    exception when feature_not_supported or invalid_parameter_value then
        null; -- by Postgres' own method, then
    end;
    execute format($f$
        create or replace view trunkline.%I as
        select q.id + m.k as id, q.enqueued_at, q.due_at, q.attempt, q.error, m.payload, m.metadata
        from trunkline.%I q,
             lateral (select generate_series(0, q.size - 1) as k, unnest(q.payload) as payload, unnest(q.metadata) as metadata) m
    $f$, 'messages_' || queue, 'queue_' || queue);
end $$;

select trunkline.rewrite('trunkline.create_queue(text, regtype, int, interval, int)',
    'perform trunkline.install_queue(queue);', 'perform trunkline.add_metadata(queue);
    perform trunkline.install_queue(queue);');

select trunkline.rewrite('trunkline.install_verbs(text)',
    -- batch
    $t${batch}(payloads {type}[], delay interval default '0')$t$,
    $t${batch}(payloads {type}[], delay interval default '0', metadata jsonb[] default null)$t$,
    $t$            return query
                with message as ($t$,
    $t$            if metadata is not null then
                if cardinality(metadata) is distinct from cardinality(payloads) then
                    raise exception '% payloads have metadata for %', cardinality(payloads), cardinality(metadata)
                        using errcode = 'invalid_parameter_value', hint = 'Pass one for each payload, null for those without.';
                end if;
                perform trunkline.check_metadata(m) from unnest(metadata) m;
            end if;
            return query
                with message as ($t$,
    $t$select m.nr, m.payload, trunkline.payload_bytes({literal}, pg_column_size(m.payload)) as bytes$t$,
    $t$select m.nr, m.payload, m.metadata,
                           trunkline.payload_bytes({literal}, pg_column_size(m.payload)) + coalesce(pg_column_size(m.metadata), 0) as bytes$t$,
    $t$unnest(payloads) as payload) m$t$,
    $t$unnest(payloads) as payload, unnest(metadata) as metadata) m$t$,
    $t$insert into trunkline.{table} (due_at, size, payload)$t$,
    $t$insert into trunkline.{table} (due_at, size, payload, metadata)$t$,
    $t$select trunkline.clock() + delay, count(*), {payloads}
$t$,
    $t$select trunkline.clock() + delay, count(*), {payloads},
                           case when count(p.metadata) > 0 then array_agg(p.metadata order by p.nr) filter (where metadata is not null) end
$t$,
    -- split
    $t$            whole {type}[];
$t$,
    $t$            whole {type}[];
            whole_metadata jsonb[];
$t$,
    $t$            whole := r.payload;
$t$,
    $t$            whole := r.payload;
            whole_metadata := r.metadata;
$t$,
    $t$                r.payload := whole[start + 1 : stop];
$t$,
    $t$                r.payload := whole[start + 1 : stop];
                r.metadata := whole_metadata[start + 1 : stop];
                if array_remove(r.metadata, null) = '{}' then
                    r.metadata := null;
                end if;
$t$,
    $t$set size = r.size, payload = r.payload where$t$,
    $t$set size = r.size, payload = r.payload, metadata = r.metadata where$t$,
    -- what is dead or archived
    $t$q.released, q.size, q.payload$t$,
    $t$q.released, q.size, q.payload, q.metadata$t$,
    $t$q.enqueued_at, q.size, q.payload, f.under$t$,
    $t$q.enqueued_at, q.size, q.payload, q.metadata, f.under$t$,
    $t$unnest(g.payload) as payload) m$t$,
    $t$unnest(g.payload) as payload, unnest(g.metadata) as metadata) m$t$,
    $t$unnest(h.payload) as payload) m$t$,
    $t$unnest(h.payload) as payload, unnest(h.metadata) as metadata) m$t$,
    $t$(id, enqueued_at, attempt, error, payload)$t$,
    $t$(id, enqueued_at, attempt, error, payload, metadata)$t$,
    $t$(id, enqueued_at, attempt, payload)$t$,
    $t$(id, enqueued_at, attempt, payload, metadata)$t$,
    $t$reason, m.payload
$t$,
    $t$reason, m.payload, m.metadata
$t$,
    $t$coalesce(g.reason, ''), m.payload
$t$,
    $t$coalesce(g.reason, ''), m.payload, m.metadata
$t$,
    $t$h.attempt - h.released, m.payload
$t$,
    $t$h.attempt - h.released, m.payload, m.metadata
$t$,
    -- take
    $t$returns table (id bigint, attempt int, size int, enqueued_at timestamptz, payload {type}[])$t$,
    $t$returns table (id bigint, attempt int, size int, enqueued_at timestamptz, payload {type}[], metadata jsonb[])$t$,
    $t$null::timestamptz, null::{type}[]$t$,
    $t$null::timestamptz, null::{type}[], null::jsonb[]$t$,
    $t$q.attempt, q.size, q.enqueued_at, q.payload)$t$,
    $t$q.attempt, q.size, q.enqueued_at, q.payload, q.metadata)$t$,
    $t$select g.id, g.attempt, g.size, g.enqueued_at, g.payload from$t$,
    $t$select g.id, g.attempt, g.size, g.enqueued_at, g.payload, g.metadata from$t$,
    -- lease
    $t$due_at timestamptz, payload {type}[])$t$,
    $t$due_at timestamptz, payload {type}[], metadata jsonb[])$t$,
    $t$q.enqueued_at, q.due_at, q.payload)$t$,
    $t$q.enqueued_at, q.due_at, q.payload, q.metadata)$t$,
    $t$l.due_at, l.payload from$t$,
    $t$l.due_at, l.payload, l.metadata from$t$);

select trunkline.rewrite('trunkline.install_bury(text)',
    $t$q.released, q.size, q.payload, d.reason$t$,
    $t$q.released, q.size, q.payload, q.metadata, d.reason$t$,
    $t$(id, enqueued_at, attempt, error, payload)$t$,
    $t$(id, enqueued_at, attempt, error, payload, metadata)$t$,
    $t$coalesce(g.reason, ''), m.payload
$t$,
    $t$coalesce(g.reason, ''), m.payload, m.metadata
$t$,
    $t$unnest(g.payload) as payload) m$t$,
    $t$unnest(g.payload) as payload, unnest(g.metadata) as metadata) m$t$);

select trunkline.rewrite('trunkline.install_lease_apart(text)',
    $t$payload {type}[], ran_out bool)$t$,
    $t$payload {type}[], metadata jsonb[], ran_out bool)$t$,
    $t$l.payload, true$t$, $t$l.payload, l.metadata, true$t$,
    $t$l.payload, false$t$, $t$l.payload, l.metadata, false$t$);

-- The verbs for every other language, with what they take and return in addition.

drop function trunkline.enqueue(text, anyelement, interval), trunkline.enqueue(text, text, interval),
    trunkline.enqueue_many(text, anyarray, interval), trunkline.enqueue_many(text, text[], interval),
    trunkline.take(text, int), trunkline.lease(text, int, interval), trunkline.messages(text), trunkline.dead_letters(text, bigint, int),
    trunkline.hand_over(text, bytea);

create function trunkline.enqueue(queue text, payload anyelement, delay interval default '0', metadata jsonb default null) returns bigint
    language plpgsql as $$
declare
    id bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('select trunkline.%I(array[$1::%s], $2, $3)', 'do_batch_' || queue, trunkline.payload_type(queue))
        into id using payload, delay, case when metadata is not null then array[metadata] end;
    return id;
end $$;

create function trunkline.enqueue(queue text, payload text, delay interval default '0', metadata jsonb default null) returns bigint
    language plpgsql as $$
declare
    id bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('select trunkline.%I(array[$1::%s], $2, $3)', 'do_batch_' || queue, trunkline.payload_type(queue))
        into id using payload, delay, case when metadata is not null then array[metadata] end;
    return id;
end $$;

create function trunkline.enqueue_many(queue text, payloads anyarray, delay interval default '0', metadata jsonb[] default null)
    returns setof bigint
    language plpgsql as $$
begin
    perform trunkline.check_queue(queue);
    return query execute format('select * from trunkline.%I($1::%s[], $2, $3)', 'do_batch_' || queue, trunkline.payload_type(queue))
        using payloads, delay, metadata;
end $$;

create function trunkline.enqueue_many(queue text, payloads text[], delay interval default '0', metadata jsonb[] default null)
    returns setof bigint
    language plpgsql as $$
begin
    perform trunkline.check_queue(queue);
    return query execute format('select * from trunkline.%I($1::%s[], $2, $3)', 'do_batch_' || queue, trunkline.payload_type(queue))
        using payloads, delay, metadata;
end $$;

create function trunkline.take(queue text, n int default 1)
    returns table (id bigint, attempt int, enqueued_at timestamptz, payload text, metadata jsonb)
    language plpgsql as $$
begin
    perform trunkline.check_queue(queue);
    return query execute format($q$
        select b.id + m.k, b.attempt, b.enqueued_at, m.payload::text, m.metadata
        from trunkline.%I($1, $2) b,
             lateral (select generate_series(0, b.size - 1) as k, unnest(b.payload) as payload, unnest(b.metadata) as metadata) m $q$,
        'do_take_' || queue)
        using trunkline.check_n(n), trunkline.floor(queue);
end $$;

create function trunkline.lease(queue text, n int default 1, lease interval default null)
    returns table (id bigint, attempt int, enqueued_at timestamptz, due_at timestamptz, payload text, metadata jsonb)
    language plpgsql as $$
begin
    perform trunkline.check_queue(queue);
    return query execute format($q$
        select b.id + m.k, b.attempt, b.enqueued_at, b.due_at, m.payload::text, m.metadata
        from trunkline.%I($1, $2, $3) b,
             lateral (select generate_series(0, b.size - 1) as k, unnest(b.payload) as payload, unnest(b.metadata) as metadata) m $q$,
        'do_lease_' || queue)
        using trunkline.check_n(n), lease, trunkline.floor(queue);
end $$;

-- Reads without taking: one row a message, in the order in which they are due.
create function trunkline.messages(queue text)
    returns table (id bigint, enqueued_at timestamptz, due_at timestamptz, attempt int, error text, payload text, metadata jsonb)
    language plpgsql as $$
begin
    perform trunkline.check_queue(queue);
    return query execute format(
        'select m.id, m.enqueued_at, m.due_at, m.attempt, m.error, m.payload::text, m.metadata from trunkline.%I m order by m.due_at, m.id',
        'messages_' || queue);
end $$;

create function trunkline.dead_letters(queue text, after bigint default 0, n int default 100)
    returns table (id bigint, enqueued_at timestamptz, dead_at timestamptz, attempt int, error text, payload text, metadata jsonb)
    language plpgsql as $$
begin
    perform trunkline.check_queue(queue);
    return query execute format(
        'select d.id, d.enqueued_at, d.dead_at, d.attempt, d.error, d.payload::text, d.metadata from trunkline.%I d
         where d.id > $1 order by d.id limit $2', 'dead_' || queue) using after, trunkline.check_n(n);
end $$;

select trunkline.rewrite('trunkline.replay(text, bigint[])',
    '(id, enqueued_at, size, payload)', '(id, enqueued_at, size, payload, metadata)',
    '1, array[b.payload] from', '1, array[b.payload], case when b.metadata is not null then array[b.metadata] end from');

-- Hands a message (as it is sent over the wire) to one consumer that waits, without storing it. Returns its id, or null
-- where nobody waits or a notification cannot hold it: then it has to be enqueued.
create function trunkline.hand_over(queue text, element bytea, metadata jsonb default null) returns bigint
    language plpgsql set enable_seqscan = off set jit = off as $$
declare
    text_of text := translate(encode(element, 'base64'), E'\n', '')
        || coalesce(' ' || translate(encode(convert_to(metadata::text, 'UTF8'), 'base64'), E'\n', ''), '');
    waiting record;
    id bigint;
begin
    perform trunkline.check_queue(queue), trunkline.check_metadata(metadata);
    if length(text_of) > 7900 then
        return null;
    end if;
    loop
        delete from trunkline.waiting w
        where w.consumer = (select o.consumer from trunkline.waiting o where o.queue = hand_over.queue limit 1 for update skip locked)
        returning w.consumer, w.alive into waiting;
        if not found then
            return null;
        end if;
        continue when pg_try_advisory_xact_lock(waiting.alive); -- it died
        id := nextval(format('trunkline.%I', 'id_' || queue));
        perform pg_notify(waiting.consumer, format('%s %s %s', id, (extract(epoch from clock_timestamp()) * 1000000)::bigint, text_of));
        return id;
    end loop;
end $$;

-- The queues that exist already. A function that returns more than before has to go first; what was prepared to call it finds the new one.
do $$
declare
    queue text;
    verb text;
begin
    for queue in select q.name from trunkline.queue q order by q.name loop
        perform trunkline.add_metadata(queue);
        foreach verb in array array['batch', 'take', 'lease', 'lease_apart'] loop
            execute format('drop function trunkline.%I', 'do_' || verb || '_' || queue);
        end loop;
        perform trunkline.install_queue(queue);
    end loop;
end $$;

drop function trunkline.rewrite(regprocedure, text[]);
