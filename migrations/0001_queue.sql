-- The whole of a queue. Every queue gets tables and functions of its own, derived from its name, so that payloads are
-- typed by the database and every plan is cached. The functions carry their planner settings with them: their plans
-- are the same for an empty, a full, a never analysed and a bloated table, on whoever's connection they run.

create table trunkline.queue (
    name         text primary key check (name ~ '^[a-z][a-z0-9_.-]{0,47}$'),
    max_attempts int not null check (max_attempts >= 1),
    lease        interval not null check (lease > '0' and lease <= '365 days'),
    max_batch    int not null check (max_batch between 1 and 1024),
    created_at   timestamptz not null default now()
);
comment on table trunkline.queue is 'One row a queue. Change it through trunkline.alter_queue, which renews the functions.';

-- The clock for every due_at. The transaction has its id before it draws the time: so whoever can still commit a row
-- that is due before now is seen in every snapshot taken after now. The floor under every scan rests on that.
create function trunkline.clock() returns timestamptz
    language sql volatile parallel unsafe
    return case when pg_current_xact_id() is not null then clock_timestamp() end;

create function trunkline.check_queue(queue text) returns void
    language plpgsql stable as $$
begin
    if queue is null or to_regclass(format('trunkline.%I', 'queue_' || queue)) is null then
        raise exception 'there is no queue %', coalesce(quote_literal(queue), 'NULL')
            using errcode = 'undefined_table',
                  hint = 'Create it with: select trunkline.create_queue(''name'', ''jsonb'')';
    end if;
end $$;

create function trunkline.payload_type(queue text) returns regtype
    language sql stable
    return (select a.atttypid::regtype from pg_attribute a
            where a.attrelid = to_regclass(format('trunkline.%I', 'dead_' || queue)) and a.attname = 'payload');

-- The bytes of a payload, if a queue takes it.
create function trunkline.payload_bytes(queue text, bytes int) returns bigint
    language plpgsql immutable as $$
begin
    if bytes is null then
        raise exception 'a payload of queue % is null', quote_literal(queue) using errcode = 'null_value_not_allowed',
            hint = 'Every message needs a payload. For a queue of signals, enqueue an empty value.';
    elsif bytes > 67108864 + 4 then
        raise exception 'a payload of % bytes is too large for queue %', bytes - 4, quote_literal(queue)
            using errcode = 'program_limit_exceeded',
                  hint = 'A payload has at most 64 MiB. Store it elsewhere and enqueue its address.';
    end if;
    return bytes;
end $$;

create function trunkline.create_queue(
    queue text, payload regtype default 'bytea', max_attempts int default 10,
    lease interval default '30 seconds', max_batch int default 1024
) returns void
    language plpgsql as $$
#variable_conflict use_variable
declare
    element text := payload::text;
    plain bool := payload in ('bytea'::regtype, 'uuid'::regtype);
begin
    if queue is null or queue !~ '^[a-z][a-z0-9_.-]{0,47}$' then
        raise exception 'a queue cannot be named %', coalesce(quote_literal(queue), 'NULL')
            using errcode = 'invalid_name',
                  hint = 'A name has 1 to 48 characters: a lower-case letter, then a-z, 0-9, "_", "." or "-".';
    end if;
    if max_attempts < 1 or lease <= '0' or lease > '365 days' or max_batch not between 1 and 1024 then
        raise exception 'the settings of queue % are out of bounds', quote_literal(queue)
            using errcode = 'invalid_parameter_value',
                  hint = 'max_attempts is at least 1, lease more than 0 and at most 365 days, max_batch 1 to 1024.';
    end if;
    perform pg_advisory_xact_lock(hashtextextended('trunkline.queue ' || queue, 0));
    if exists (select from trunkline.queue q where q.name = queue) then
        if exists (select from trunkline.queue q where q.name = queue and q.max_attempts = max_attempts
                   and q.lease = lease and q.max_batch = max_batch)
           and (trunkline.payload_type(queue) = payload or exists (
                select from pg_type t where t.oid = trunkline.payload_type(queue) and t.typbasetype = payload)) then
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
        execute format('create domain %s as %s', element, payload);
    end if;

    execute format('create sequence trunkline.%I as bigint increment 1024 minvalue 1024', 'id_' || queue);
    execute format($f$
        create table trunkline.%1$I (
            id          bigint constraint %4$I primary key default nextval('trunkline.%2$I'),
            enqueued_at timestamptz not null default clock_timestamp(),
            due_at      timestamptz not null default trunkline.clock(),
            attempt     int not null default 0,
            released    int not null default 0,
            size        int not null,
            error       text,
            payload     %3$s[] not null
        ) with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05,
                toast.autovacuum_vacuum_threshold = 1000, toast.autovacuum_vacuum_scale_factor = 0.05)
    $f$, 'queue_' || queue, 'id_' || queue, element, 'key_' || queue);
    -- The sum hides the id from conditions on it: planned while the table was empty, they would cling to this index.
    execute format('create index %I on trunkline.%I (due_at, (id + 0))', 'due_' || queue, 'queue_' || queue);
    execute format('alter sequence trunkline.%I owned by trunkline.%I.id', 'id_' || queue, 'queue_' || queue);
    execute format($f$
        create table trunkline.%I (
            id bigint constraint %I primary key, enqueued_at timestamptz not null, dead_at timestamptz not null default clock_timestamp(),
            attempt int not null, error text not null, payload %s not null)
    $f$, 'dead_' || queue, 'dead_key_' || queue, element);
    execute format($f$
        create table trunkline.%I (
            id bigint constraint %I primary key, enqueued_at timestamptz not null, archived_at timestamptz not null default clock_timestamp(),
            attempt int not null, payload %s not null)
    $f$, 'archive_' || queue, 'archive_key_' || queue, element);
    execute format('create index %I on trunkline.%I (archived_at)', 'age_' || queue, 'archive_' || queue);
    execute format($f$
        create view trunkline.%I as
        select q.id + m.k as id, q.enqueued_at, q.due_at, q.attempt, q.error, m.payload
        from trunkline.%I q,
             lateral (select generate_series(0, q.size - 1) as k, unnest(q.payload) as payload) m
    $f$, 'messages_' || queue, 'queue_' || queue);

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

    insert into trunkline.queue (name, max_attempts, lease, max_batch) values (queue, max_attempts, lease, max_batch);
    perform trunkline.install_queue(queue);
end $$;

create function trunkline.alter_queue(
    queue text, max_attempts int default null, lease interval default null, max_batch int default null
) returns void
    language plpgsql as $$
begin
    perform trunkline.check_queue(queue);
    update trunkline.queue q
    set max_attempts = coalesce(alter_queue.max_attempts, q.max_attempts),
        lease = coalesce(alter_queue.lease, q.lease),
        max_batch = coalesce(alter_queue.max_batch, q.max_batch)
    where q.name = alter_queue.queue;
    perform trunkline.install_queue(queue);
end $$;

create function trunkline.drop_queue(queue text) returns void
    language plpgsql set lock_timeout = '10s' as $$
declare
    routine regprocedure;
begin
    perform trunkline.check_queue(queue);
    perform pg_advisory_xact_lock(hashtextextended('trunkline.queue ' || queue, 0));
    begin
        execute format('lock table trunkline.%I in access exclusive mode', 'queue_' || queue);
    exception when lock_not_available then
        -- Whoever waits for this lock makes everybody wait who comes after.
        raise exception 'queue % is in use', quote_literal(queue) using errcode = 'lock_not_available',
            hint = 'A transaction that touched it has been open for ten seconds. End it (see pg_stat_activity), then try again.';
    end;
    for routine in
        select p.oid from pg_proc p
        where p.pronamespace = 'trunkline'::regnamespace
          and p.proname = any (array(select 'do_' || verb || '_' || queue from unnest(array[
              'batch', 'split', 'carve', 'bury', 'gather', 'cut', 'take', 'lease', 'look', 'peek', 'ack', 'archive', 'release',
              'retry', 'extend', 'charge', 'fail', 'fault']) verb))
    loop
        execute format('drop function %s', routine);
    end loop;
    execute format('drop view trunkline.%I', 'messages_' || queue);
    execute format('drop table trunkline.%I, trunkline.%I, trunkline.%I', 'queue_' || queue, 'dead_' || queue, 'archive_' || queue);
    execute format('drop domain if exists trunkline.%I', 'payload_' || queue);
    delete from trunkline.queue q where q.name = queue;
    perform pg_notify('trunkline.' || queue, ''); -- so that sleepers learn of it
end $$;

-- Writes the functions of one queue; their names begin with do_, which no other function's does. In the texts below, {table} stands for the queue's table and so on.
create function trunkline.install_queue(queue text) returns void
    language plpgsql set search_path = pg_catalog as $install$
declare
    settings trunkline.queue;
    text_of text;
    -- Plans that need no statistics: always the index, never the heap from end to end. Functions that only others of
    -- these call plan under the settings of those.
    planner constant text := $t$
        set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
        set jit = off set plan_cache_mode = force_generic_plan $t$;
    -- What ends a lease names ranges of messages under an attempt. First the rows that lie wholly inside the ranges;
    -- if messages are missing, the rows that straddle an edge are carved there, and once more. Returns what was settled.
    settle constant text := $t$
        create or replace function trunkline.{verb}(ids bigint[], sizes int[], attempts int[] {arguments})
        returns table (id bigint, size int, attempt int) language plpgsql {planner} as $f$
        #variable_conflict use_variable
        declare
            asked bigint := (select sum(s) from unnest(sizes) s);
            settled bigint := 0;
            settled_ids bigint[] := '{}';
            settled_sizes int[] := '{}';
            settled_attempts int[] := '{}';
            more record;
        begin
            for pass in 1..2 loop
                with held as ({statement})
                select array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
                       coalesce(sum(h.size), 0) as size
                into more from held h;
                settled := settled + more.size;
                settled_ids := settled_ids || more.ids;
                settled_sizes := settled_sizes || more.sizes;
                settled_attempts := settled_attempts || more.attempts;
                exit when settled >= asked or pass = 2;
                perform trunkline.{carve}(d.id, d.id + d.size, d.attempt, {leased})
                from unnest(ids, sizes, attempts) d(id, size, attempt);
            end loop;
            return query select * from unnest(settled_ids, settled_sizes, settled_attempts);
        end $f$ $t$;
    -- The rows that a settling statement is about: inside a range, under its attempt, and leased still.
    held constant text := $t$
        unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
        where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
          and q.attempt = d.attempt and q.error is null and q.due_at > clock_timestamp()
          and q.id <> all (settled_ids) $t$;
    -- After a failure: the messages are due again after their delay, or dead if their attempts are used up. Under a
    -- lease the attempt was charged when the lease began; without one (a transaction rolled back) it is charged here; and if somebody else holds them by then, that one settles
    -- them, and nobody waits.
    failure constant text := $t$
        create or replace function trunkline.{verb}(
            ids bigint[], sizes int[], attempts int[], delays interval[], errors text[])
        returns table (id bigint, size int, under int) language plpgsql as $f$
        #variable_conflict use_variable
        begin
            return query
            with failed as materialized (
                select q.ctid as tid, q.attempt as under, q.attempt + (not {leased})::int as attempt,
                       q.attempt + (not {leased})::int - q.released >= {max_attempts} as spent, d.delay, d.error
                from unnest(ids, sizes, attempts, delays, errors) d(id, size, attempt, delay, error)
                join trunkline.{table} q
                  on q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size and q.attempt = d.attempt
                 and ({leased} and q.error is null and q.due_at > clock_timestamp()
                      or not {leased} and (q.attempt = 0 or q.error is not null or q.due_at <= clock_timestamp()))
                for update of q {skip}
            ), again as (
                update trunkline.{table} q
                set due_at = trunkline.clock() + f.delay, attempt = f.attempt, error = coalesce(f.error, '')
                from failed f where q.ctid = f.tid and not f.spent returning q.id, q.size, f.under
            ), gone as (
                delete from trunkline.{table} q using failed f
                where q.ctid = f.tid and f.spent
                returning q.id, q.enqueued_at, q.size, q.payload, f.under, f.attempt - q.released as charged, f.error as reason
            ), dead as (
                insert into trunkline.{dead} (id, enqueued_at, attempt, error, payload)
                select g.id + m.k, g.enqueued_at, g.charged, coalesce(g.reason, ''), m.payload
                from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload) m
            )
            select a.id, a.size, a.under from again a union all select g.id, g.size, g.under from gone g;
        end $f$ $t$;
begin
    select * into strict settings from trunkline.queue q where q.name = install_queue.queue;
    foreach text_of in array array[

    -- One batch or several, for callers that have no client library: wakes whoever listens when the transaction commits.
    -- A batch ends after {max_batch} messages or some 256 KiB.
    $t$ create or replace function trunkline.{batch}(payloads {type}[], delay interval default '0')
        returns setof bigint language plpgsql {planner} as $f$
        #variable_conflict use_variable
        begin
            if delay is null or delay < '0' or delay > '36500 days' then
                raise exception 'a delay of % is out of bounds', delay using errcode = 'invalid_parameter_value',
                    hint = 'A delay is at least zero and at most 36500 days.';
            end if;
            return query
                with message as (
                    select m.nr, m.payload, trunkline.payload_bytes({literal}, pg_column_size(m.payload)) as bytes
                    from (select generate_series(1, cardinality(payloads)) as nr, unnest(payloads) as payload) m
                ), placed as (
                    select m.*, (sum(m.bytes) over (order by m.nr) - m.bytes)::bigint / 262144 as page from message m
                ), batch as (
                    insert into trunkline.{table} (due_at, size, payload)
                    select trunkline.clock() + delay, count(*), {payloads}
                    from placed p group by p.page, p.bytes > 262144, (p.nr - 1) / {max_batch} order by min(p.nr)
                    returning id, size
                )
                select b.id + k from batch b, generate_series(0, b.size - 1) k order by b.id, k;
            if cardinality(payloads) > 0 then
                perform pg_notify('trunkline.{name}', '');
            end if;
        end $f$ $t$,

    -- Cuts a row, locked by the caller, before the messages at the given offsets. A row rewritten once falls into at
    -- least 32 pieces, so whoever takes it message by message has it rewritten twice, not a thousand times.
    $t$ create or replace function trunkline.{split}(row_id bigint, cuts int[])
        returns void language plpgsql as $f$
        #variable_conflict use_variable
        declare
            r trunkline.{table}%rowtype;
            whole {type}[];
            whole_size int;
            ends int[];
            start int := 0;
            stop int;
        begin
            select * into r from trunkline.{table} q where q.id = row_id;
            whole := r.payload;
            whole_size := r.size;
            select array_agg(distinct c order by c) into ends from (
                select unnest(cuts) union all
                select generate_series(1, 32) * ((whole_size + 31) / 32) union all
                select whole_size) x(c)
            where c > 0 and c <= whole_size;
            foreach stop in array ends loop
                r.size := stop - start;
                r.payload := whole[start + 1 : stop];
                if start = 0 then
                    update trunkline.{table} q set size = r.size, payload = r.payload where q.id = row_id;
                else
                    r.id := row_id + start;
                    insert into trunkline.{table} select r.*;
                end if;
                start := stop;
            end loop;
        end $f$ $t$,

    -- Splits the rows that reach over either end of the messages from low up to high, if they are still the caller's.
    -- A row that somebody else split meanwhile is looked up again, in a fresh snapshot.
    $t$ create or replace function trunkline.{carve}(low bigint, high bigint, of_attempt int, leased bool)
        returns void language plpgsql {planner} as $f$
        #variable_conflict use_variable
        declare
            edge bigint; r trunkline.{table}%rowtype; seen record;
        begin
            foreach edge in array array[low, high] loop
                loop
                    select q.id, q.size, q.attempt, q.error, q.due_at into seen
                    from trunkline.{table} q where q.id < edge order by q.id desc limit 1;
                    exit when not found or seen.id + seen.size <= edge or seen.attempt <> of_attempt
                           or leased and (seen.error is not null or seen.due_at <= clock_timestamp());
                    if leased then
                        select * into r from trunkline.{table} q where q.id = seen.id for update;
                    else
                        -- Whoever holds it settles it.
                        select * into r from trunkline.{table} q where q.id = seen.id for update skip locked;
                        exit when not found;
                    end if;
                    continue when not found or r.size <> seen.size;
                    if r.attempt = of_attempt and (not leased or r.error is null and r.due_at > clock_timestamp()) then
                        perform trunkline.{split}(r.id, array[low - r.id, high - r.id]::int[]);
                    end if;
                    exit;
                end loop;
            end loop;
        end $f$ $t$,

    -- Moves a row, locked by the caller, to the dead letters.
    $t$ create or replace function trunkline.{bury}(row_id bigint, reason text)
        returns void language plpgsql as $f$
        #variable_conflict use_variable
        begin
            with gone as (
                delete from trunkline.{table} q where q.id = row_id
                returning q.id, q.enqueued_at, q.attempt, q.released, q.size, q.payload)
            insert into trunkline.{dead} (id, enqueued_at, attempt, error, payload)
            select g.id + m.k, g.enqueued_at, g.attempt - g.released, reason, m.payload
            from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload) m;
        end $f$ $t$,

    -- The one way to what is due. Locks rows that hold at most n messages together, oldest first, and returns
    -- their places in order; an empty array where nothing is due. A row that cannot be handed out as it is (too large for n, a
    -- lease that ran out, attempts used up) is split or buried when it stands first. In somebody's transaction that
    -- would hide the rest until the commit: there (cut = false) such a row is an error, which names how many rows
    -- before it would do, so that the caller can give the locks back.
    $t$ create or replace function trunkline.{gather}(
            n int, floor timestamptz, rows int, cut bool default true, out tids tid[], out got int)
        language plpgsql as $f$
        #variable_conflict use_variable
        declare
            until timestamptz := clock_timestamp();
            line record;
        begin
            loop
                if rows = 1 then
                    -- One row needs no running total.
                    select 1 as locked, array[q.ctid] as tids, q.size as got, q.id as first, q.size,
                           q.attempt - q.released >= {max_attempts} as spent,
                           q.attempt > 0 and q.error is null and q.size > 1 as ran_out,
                           (q.size <= n and q.attempt - q.released < {max_attempts}
                            and (q.attempt = 0 or q.error is not null or q.size = 1))::int as fitting
                    into line
                    from trunkline.{table} q
                    where q.due_at >= floor and q.due_at <= until
                    order by q.due_at, q.id + 0 limit 1 for update skip locked;
                    if not found then
                        tids := '{}';
                        return;
                    end if;
                else
                    with due as materialized (
                        select q.ctid as tid, q.id, q.due_at, q.size,
                               q.attempt - q.released >= {max_attempts} as spent,
                               q.attempt > 0 and q.error is null and q.size > 1 as ran_out
                        from trunkline.{table} q
                        where q.due_at >= floor and q.due_at <= until
                        order by q.due_at, q.id + 0 limit rows for update skip locked
                    ), line as (
                        select d.*, row_number() over w as nr,
                               sum(d.size) over w <= n and not bool_or(d.spent or d.ran_out) over w as fits
                        from due d window w as (order by d.due_at, d.id)
                    )
                    select count(*)::int as locked,
                           array_agg(l.tid order by l.nr) filter (where l.fits) as tids,
                           (count(*) filter (where l.fits))::int as fitting, (sum(l.size) filter (where l.fits))::int as got,
                           min(l.id) filter (where l.nr = 1) as first, min(l.size) filter (where l.nr = 1) as size,
                           bool_or(l.spent) filter (where l.nr = 1) as spent, bool_or(l.ran_out) filter (where l.nr = 1) as ran_out
                    into line from line l;
                end if;
                if line.fitting < line.locked and not cut then
                    raise exception sqlstate 'TL000' using message = line.fitting::text;
                elsif line.locked = 0 or line.fitting > 0 then
                    tids := coalesce(line.tids, '{}');
                    got := line.got;
                    return;
                elsif line.spent then
                    perform trunkline.{bury}(line.first, 'the lease of the last attempt ran out');
                elsif line.ran_out then
                    perform trunkline.{split}(line.first, array(select generate_series(1, line.size)));
                else
                    perform trunkline.{split}(line.first, array[n]);
                end if;
            end loop;
        end $f$ $t$,

    -- For takes in somebody's transaction: see that what stands first fits, and leave it where it is.
    $t$ create or replace function trunkline.{cut}(n int, floor timestamptz)
        returns void language plpgsql {planner} as $f$
        #variable_conflict use_variable
        begin
            perform trunkline.{gather}(n, floor, 1);
        end $f$ $t$,

    -- Takes up to n messages. The last row has no id where something due was left alone because it must be cut first.
    $t$ create or replace function trunkline.{take}(n int, floor timestamptz default '-infinity', rows int default 1, cut bool default true)
        returns table (id bigint, attempt int, size int, enqueued_at timestamptz, payload {type}[])
        language plpgsql {planner} as $f$
        #variable_conflict use_variable
        declare
            tids tid[];
            got int;
        begin
            while n > 0 loop
                if cut then
                    select g.tids, g.got into tids, got from trunkline.{gather}(n, floor, rows) g;
                else
                    begin
                        select g.tids, g.got into tids, got from trunkline.{gather}(n, floor, rows, false) g;
                    exception when sqlstate 'TL000' then
                        rows := sqlerrm::int;
                        continue when rows > 0;
                        return query select null::bigint, 0, 0, null::timestamptz, null::{type}[];
                        return;
                    end;
                end if;
                exit when tids = '{}';
                return query
                    with gone as (
                        delete from trunkline.{table} q using unnest(tids) with ordinality d(tid, nr)
                        where q.ctid = d.tid returning d.nr, q.id, q.attempt, q.size, q.enqueued_at, q.payload)
                    select g.id, g.attempt, g.size, g.enqueued_at, g.payload from gone g order by g.nr;
                n := n - got;
                rows := least(n, 1 + n::bigint * cardinality(tids) / got);
            end loop;
        end $f$ $t$,

    -- Leases up to n messages, each of them charged with an attempt.
    $t$ create or replace function trunkline.{lease}(n int, lease interval default null, floor timestamptz default '-infinity', rows int default 1)
        returns table (id bigint, attempt int, size int, enqueued_at timestamptz, due_at timestamptz, payload {type}[])
        language plpgsql {planner} as $f$
        #variable_conflict use_variable
        declare
            tids tid[];
            got int;
            term interval := coalesce(lease, {lease_time});
        begin
            if term <= '0' or term > '365 days' then
                raise exception 'a lease of % is out of bounds', term using errcode = 'invalid_parameter_value',
                    hint = 'A lease is more than zero and at most 365 days.';
            end if;
            while n > 0 loop
                select g.tids, g.got into tids, got from trunkline.{gather}(n, floor, rows) g;
                exit when tids = '{}';
                return query
                    with leased as (
                        update trunkline.{table} q
                        set due_at = clock_timestamp() + term, attempt = q.attempt + 1, error = null
                        from unnest(tids) with ordinality d(tid, nr)
                        where q.ctid = d.tid returning d.nr, q.id, q.attempt, q.size, q.enqueued_at, q.due_at, q.payload)
                    select l.id, l.attempt, l.size, l.enqueued_at, l.due_at, l.payload from leased l order by l.nr;
                n := n - got;
                rows := least(n, 1 + n::bigint * cardinality(tids) / got);
            end loop;
        end $f$ $t$,

    -- What a consumer needs to move its floor and to know how long it may sleep. now() is earlier than the snapshot, at
    -- any isolation level: whoever draws an earlier due_at has an id below "next" then (see trunkline.clock). The next
    -- id to be given out is what age() counts from; a snapshot's xmax is only one past the last that has ended.
    $t$ create or replace function trunkline.{look}(floor timestamptz)
        returns table (oldest timestamptz, candidate timestamptz, due_in float8, running bigint, next bigint, cost float8)
        language plpgsql {planner} as $f$
        #variable_conflict use_variable
        declare
            began timestamptz := clock_timestamp();
        begin
            return query
                select o.due_at, least(o.due_at, now()),
                       extract(epoch from o.due_at - clock_timestamp())::float8,
                       pg_snapshot_xmin(s)::text::bigint,
                       pg_snapshot_xmin(s)::text::bigint + age(pg_snapshot_xmin(s)::xid),
                       extract(epoch from clock_timestamp() - began)::float8
                from pg_current_snapshot() s
                left join lateral (
                    select q.due_at from trunkline.{table} q where q.due_at >= floor order by q.due_at, q.id + 0 limit 1) o on true;
        end $f$ $t$,

    -- Reads on from a row, in the order of the due times.
    $t$ create or replace function trunkline.{peek}(after_due timestamptz, after_id bigint, n bigint)
        returns setof trunkline.{table} language plpgsql {planner} as $f$
        #variable_conflict use_variable
        begin
            return query select q.* from trunkline.{table} q
                where (q.due_at, q.id + 0) > (after_due, after_id) order by q.due_at, q.id + 0 limit n;
        end $f$ $t$,

    replace(replace(replace(settle, '{verb}', '{ack}'), '{arguments}', ''), '{statement}', $t$
        delete from trunkline.{table} q using $t$ || held || $t$ returning q.id, q.size, d.attempt as under $t$),

    replace(replace(replace(settle, '{verb}', '{archive}'), '{arguments}', ''), '{statement}', $t$
        delete from trunkline.{table} q using $t$ || held || $t$ returning q.id, q.enqueued_at, q.attempt, q.released, q.size, q.payload, d.attempt as under
        ), kept as (
            insert into trunkline.{archive} (id, enqueued_at, attempt, payload)
            select h.id + m.k, h.enqueued_at, h.attempt - h.released, m.payload
            from held h, lateral (select generate_series(0, h.size - 1) as k, unnest(h.payload) as payload) m $t$),

    -- As if it had never been leased. The attempt is not charged, and yet its number is not used again: whoever holds
    -- the old lease still finds it lost.
    replace(replace(replace(settle, '{verb}', '{release}'), '{arguments}', ''), '{statement}', $t$
        update trunkline.{table} q set due_at = trunkline.clock(), released = q.released + 1, error = ''
        from $t$ || held || $t$ returning q.id, q.size, d.attempt as under $t$),

    replace(replace(replace(settle, '{verb}', '{extend}'), '{arguments}', ', lease interval'), '{statement}', $t$
        update trunkline.{table} q set due_at = clock_timestamp() + lease from $t$ || held || $t$ returning q.id, q.size, d.attempt as under $t$),

    replace(replace(replace(settle, '{verb}', '{retry}'), '{arguments}', ', delays interval[], errors text[]'), '{statement}', $t$
        select * from trunkline.{fail}(ids, sizes, attempts, delays, errors) $t$),

    replace(replace(replace(replace(settle, '{verb}', '{charge}'), '{arguments}', ', delays interval[], errors text[]'), '{leased}', 'false'),
            '{statement}', $t$ select * from trunkline.{fault}(ids, sizes, attempts, delays, errors) $t$),

    replace(replace(replace(failure, '{verb}', '{fail}'), '{leased}', 'true'), '{skip}', ''),
    replace(replace(replace(failure, '{verb}', '{fault}'), '{leased}', 'false'), '{skip}', 'skip locked')
    ] loop
        text_of := replace(text_of, '{planner}', planner);
        text_of := replace(text_of, '{leased}', 'true');
        text_of := replace(text_of, '{type}', trunkline.payload_type(queue)::text);
        -- array_agg flattens arrays, even under a domain; a slice copies what it skips.
        text_of := replace(text_of, '{payloads}', case when exists (select from pg_type t join pg_type b on b.oid = t.typbasetype
            where t.oid = trunkline.payload_type(queue) and b.typsubscript = 'array_subscript_handler'::regproc)
            then 'payloads[min(p.nr):max(p.nr)]' else 'array_agg(p.payload order by p.nr)' end);
        text_of := replace(text_of, '{name}', queue);
        text_of := replace(text_of, '{literal}', quote_literal(queue));
        text_of := replace(text_of, '{max_attempts}', settings.max_attempts::text);
        text_of := replace(text_of, '{max_batch}', settings.max_batch::text);
        text_of := replace(text_of, '{lease_time}', format('%L::interval', settings.lease));
        text_of := replace(text_of, '{table}', quote_ident('queue_' || queue));
        text_of := replace(text_of, '{dead}', quote_ident('dead_' || queue));
        text_of := regexp_replace(text_of, 'into trunkline\.\{archive\}', format('into trunkline.%I', 'archive_' || queue));
        text_of := regexp_replace(text_of, '\{(batch|split|carve|bury|gather|cut|take|lease|look|peek|ack|archive|release|extend|retry|charge|fail|fault)\}',
                                  '"do_\1_' || queue || '"', 'g');
        execute text_of;
    end loop;
end $install$;
