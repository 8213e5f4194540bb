-- The verbs for every other language. They name the queue by text and hand payloads out as text; each leads to the
-- queue's own function, whose plans are cached by the session.

create function trunkline.check_n(n int) returns int
    language plpgsql immutable as $$
begin
    if n is null or n < 0 then
        raise exception 'n is %, but a number of messages is at least 0', coalesce(n::text, 'null')
            using errcode = 'invalid_parameter_value', hint = 'Ask for as many messages as you can handle at a time.';
    end if;
    return n;
end $$;

-- The floor under the scans of this session (see trunkline.clock): kept in a setting, moved by a look every 100 ms.
-- Its state is: floor, candidate, the transaction that has to end first, when it began, when it looked last. It begins
-- anew every 30 seconds, from the far left, and so finds what a clock that stepped back put below.
create function trunkline.floor(queue text) returns timestamptz
    language plpgsql as $$
declare
    setting text := format('trunkline.floor_%s', to_regclass(format('trunkline.%I', 'queue_' || queue))::oid);
    known text[] := string_to_array(nullif(current_setting(setting, true), ''), ',');
    reached timestamptz := coalesce(known[1], '-infinity')::timestamptz;
    seen record;
begin
    if clock_timestamp() between known[5]::timestamptz and known[5]::timestamptz + interval '100 ms' then
        return reached;
    elsif known[4]::timestamptz not between clock_timestamp() - interval '30 s' and clock_timestamp() then
        known := null;
        reached := '-infinity';
    end if;
    execute format('select * from trunkline.%I($1)', 'do_look_' || queue) into seen using reached;
    if known is null then
        known := array['-infinity', seen.candidate::text, seen.next::text, clock_timestamp()::text];
    elsif seen.running >= known[3]::bigint then
        reached := greatest(reached, least(known[2]::timestamptz, seen.oldest));
        known := array[reached::text, seen.candidate::text, seen.next::text, known[4]];
    end if;
    perform set_config(setting, array_to_string(known[1:4] || clock_timestamp()::text, ','), false);
    return reached;
end $$;

create function trunkline.enqueue(queue text, payload anyelement, delay interval default '0') returns bigint
    language plpgsql as $$
declare
    id bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('select trunkline.%I(array[$1::%s], $2)', 'do_batch_' || queue, trunkline.payload_type(queue))
        into id using payload, delay;
    return id;
end $$;

create function trunkline.enqueue(queue text, payload text, delay interval default '0') returns bigint
    language plpgsql as $$
declare
    id bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('select trunkline.%I(array[$1::%s], $2)', 'do_batch_' || queue, trunkline.payload_type(queue))
        into id using payload, delay;
    return id;
end $$;

create function trunkline.enqueue_many(queue text, payloads anyarray, delay interval default '0') returns setof bigint
    language plpgsql as $$
begin
    perform trunkline.check_queue(queue);
    return query execute format('select * from trunkline.%I($1::%s[], $2)', 'do_batch_' || queue, trunkline.payload_type(queue))
        using payloads, delay;
end $$;

create function trunkline.enqueue_many(queue text, payloads text[], delay interval default '0') returns setof bigint
    language plpgsql as $$
begin
    perform trunkline.check_queue(queue);
    return query execute format('select * from trunkline.%I($1::%s[], $2)', 'do_batch_' || queue, trunkline.payload_type(queue))
        using payloads, delay;
end $$;

create function trunkline.take(queue text, n int default 1)
    returns table (id bigint, attempt int, enqueued_at timestamptz, payload text)
    language plpgsql as $$
begin
    perform trunkline.check_queue(queue);
    return query execute format($q$
        select b.id + m.k, b.attempt, b.enqueued_at, m.payload::text
        from trunkline.%I($1, $2) b,
             lateral (select generate_series(0, b.size - 1) as k, unnest(b.payload) as payload) m $q$, 'do_take_' || queue)
        using trunkline.check_n(n), trunkline.floor(queue);
end $$;

create function trunkline.lease(queue text, n int default 1, lease interval default null)
    returns table (id bigint, attempt int, enqueued_at timestamptz, due_at timestamptz, payload text)
    language plpgsql as $$
begin
    perform trunkline.check_queue(queue);
    return query execute format($q$
        select b.id + m.k, b.attempt, b.enqueued_at, b.due_at, m.payload::text
        from trunkline.%I($1, $2, $3) b,
             lateral (select generate_series(0, b.size - 1) as k, unnest(b.payload) as payload) m $q$, 'do_lease_' || queue)
        using trunkline.check_n(n), lease, trunkline.floor(queue);
end $$;

-- Ends leases by the given per-queue function, all of them or, with an error, none.
create function trunkline.settle(verb text, queue text, ids bigint[], attempts int[], more text default '',
                                 span interval default null, reason text default null) returns void
    language plpgsql as $$
declare
    lost bigint[];
begin
    perform trunkline.check_queue(queue);
    if cardinality(ids) is distinct from cardinality(attempts) or array_position(ids, null) is not null
       or array_position(attempts, null) is not null then
        raise exception 'every message needs its attempt: % ids, % attempts', coalesce(cardinality(ids), 0), coalesce(cardinality(attempts), 0)
            using errcode = 'invalid_parameter_value', hint = 'Pass id and attempt as trunkline.lease returned them.';
    end if;
    execute format($q$
        select array_agg(i.id) from unnest($1::bigint[], $2::int[]) i(id, attempt)
        where (i.id, i.attempt) not in (
            select d.id + k, d.attempt from trunkline.%I($1, array_fill(1, array[cardinality($1)]), $2 %s) d,
                   generate_series(0, d.size - 1) k) $q$, 'do_' || verb || '_' || queue, more)
        into lost using ids, attempts, span, reason;
    if lost is not null then
        raise exception 'the lease of message % of queue % is lost', array_to_string(lost[1:3], ', '), quote_literal(queue)
            using errcode = 'TL001', detail = 'It ended, and the message may be someone else''s now.',
                  hint = 'Roll back what was done for it. Work that takes longer needs a longer lease, or trunkline.extend.';
    end if;
end $$;

create function trunkline.ack(queue text, id bigint, attempt int) returns void
    language sql as $$ select trunkline.settle('ack', queue, array[id], array[attempt]) $$;
create function trunkline.ack_many(queue text, ids bigint[], attempts int[]) returns void
    language sql as $$ select trunkline.settle('ack', queue, ids, attempts) $$;

create function trunkline.archive(queue text, id bigint, attempt int) returns void
    language sql as $$ select trunkline.settle('archive', queue, array[id], array[attempt]) $$;
create function trunkline.archive_many(queue text, ids bigint[], attempts int[]) returns void
    language sql as $$ select trunkline.settle('archive', queue, ids, attempts) $$;

create function trunkline.extend(queue text, id bigint, attempt int, lease interval) returns void
    language plpgsql as $$
begin
    if lease is null or lease <= '0' or lease > '365 days' then
        raise exception 'a lease of % is out of bounds', lease using errcode = 'invalid_parameter_value',
            hint = 'A lease is more than zero and at most 365 days.';
    end if;
    perform trunkline.settle('extend', queue, array[id], array[attempt], ', $3', lease);
end $$;

-- Due again at once, and the attempt is not charged; the lease is lost with it.
create function trunkline.release(queue text, id bigint, attempt int) returns void
    language plpgsql as $$
begin
    perform trunkline.settle('release', queue, array[id], array[attempt]);
    perform pg_notify('trunkline.' || queue, '');
end $$;

-- Due again after the delay, or a dead letter after the last attempt.
create function trunkline.retry(queue text, id bigint, attempt int, delay interval default '0', error text default '') returns void
    language plpgsql as $$
begin
    if delay is null or delay < '0' or delay > '365 days' then
        raise exception 'a delay of % is out of bounds', delay using errcode = 'invalid_parameter_value',
            hint = 'A delay is at least zero and at most 365 days.';
    end if;
    perform trunkline.settle('retry', queue, array[id], array[attempt], ', array[$3], array[$4]', delay, error);
    perform pg_notify('trunkline.' || queue, '');
end $$;

-- Reads without taking: one row a message, in the order in which they are due.
create function trunkline.messages(queue text)
    returns table (id bigint, enqueued_at timestamptz, due_at timestamptz, attempt int, error text, payload text)
    language plpgsql as $$
begin
    perform trunkline.check_queue(queue);
    return query execute format(
        'select m.id, m.enqueued_at, m.due_at, m.attempt, m.error, m.payload::text from trunkline.%I m order by m.due_at, m.id',
        'messages_' || queue);
end $$;

create function trunkline.dead_letters(queue text, after bigint default 0, n int default 100)
    returns table (id bigint, enqueued_at timestamptz, dead_at timestamptz, attempt int, error text, payload text)
    language plpgsql as $$
begin
    perform trunkline.check_queue(queue);
    return query execute format(
        'select d.id, d.enqueued_at, d.dead_at, d.attempt, d.error, d.payload::text from trunkline.%I d
         where d.id > $1 order by d.id limit $2', 'dead_' || queue) using after, trunkline.check_n(n);
end $$;

-- Makes dead letters due again: those with the given ids, or all. Returns how many.
create function trunkline.replay(queue text, ids bigint[] default null) returns bigint
    language plpgsql as $$
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    execute format($q$
        with back as (delete from trunkline.%I d where $1 is null or d.id = any ($1) returning *)
        insert into trunkline.%I (id, enqueued_at, size, payload)
        select b.id, b.enqueued_at, 1, array[b.payload] from back b order by b.id $q$, 'dead_' || queue, 'queue_' || queue) using ids;
    get diagnostics count = row_count;
    perform pg_notify('trunkline.' || queue, '');
    return count;
end $$;

-- Deletes dead letters for good: those with the given ids, or all. Returns how many.
create function trunkline.discard(queue text, ids bigint[] default null) returns bigint
    language plpgsql as $$
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('delete from trunkline.%I d where $1 is null or d.id = any ($1)', 'dead_' || queue) using ids;
    get diagnostics count = row_count;
    return count;
end $$;

-- Empties the queue; dead letters and the archive stay. Returns how many messages.
create function trunkline.purge(queue text) returns bigint
    language plpgsql as $$
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('with gone as (delete from trunkline.%I q returning q.size) select coalesce(sum(g.size), 0) from gone g',
                   'queue_' || queue) into count;
    return count;
end $$;

-- Deletes what was archived longer ago than the age. Returns how many messages.
create function trunkline.prune(queue text, age interval) returns bigint
    language plpgsql as $$
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('delete from trunkline.%I a where a.archived_at < clock_timestamp() - $1', 'archive_' || queue) using age;
    get diagnostics count = row_count;
    return count;
end $$;

-- What a queue holds, in messages.
create function trunkline.stats(queue text)
    returns table (due bigint, delayed bigint, leased bigint, to_retry bigint, dead bigint, rows bigint, oldest_due interval)
    language plpgsql as $$
begin
    perform trunkline.check_queue(queue);
    return query execute format($q$
        select coalesce(sum(q.size) filter (where q.due_at <= t), 0)::bigint,
               coalesce(sum(q.size) filter (where q.due_at > t and q.attempt = 0), 0)::bigint,
               coalesce(sum(q.size) filter (where q.due_at > t and q.attempt > 0 and q.error is null), 0)::bigint,
               coalesce(sum(q.size) filter (where q.due_at > t and q.error is not null), 0)::bigint,
               (select count(*) from trunkline.%I), count(q.id), max(t) - min(q.due_at) filter (where q.due_at <= t)
        from (select clock_timestamp() as t) clock left join trunkline.%I q on true $q$, 'dead_' || queue, 'queue_' || queue);
end $$;

-- Consumers that wait, at most once, for a message inside a notification. Unlogged: after a crash nobody waits.
-- alive is an advisory lock that the consumer's listening session holds as long as it lives.
create unlogged table trunkline.waiting (
    consumer text primary key,
    queue    text not null,
    alive    bigint not null
);
create index waiting_queue on trunkline.waiting (queue);

-- Hands a message (as it is sent over the wire) to one consumer that waits, without storing it. Returns its id, or null
-- where nobody waits or a notification cannot hold it: then it has to be enqueued.
create function trunkline.hand_over(queue text, element bytea) returns bigint
    language plpgsql set enable_seqscan = off set jit = off as $$
declare
    text_of text := translate(encode(element, 'base64'), E'\n', '');
    waiting record;
    id bigint;
begin
    perform trunkline.check_queue(queue);
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
