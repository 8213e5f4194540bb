-- What the migrations lead to, with one queue `emails`. Not to be run: it is read off the catalog by a test,
-- which writes it anew with TRUNKLINE_BLESS=1.

table archive_emails (
    id bigint not null,
    enqueued_at timestamp with time zone not null,
    archived_at timestamp with time zone not null default clock_timestamp(),
    attempt integer not null,
    payload jsonb not null,
    metadata jsonb
);

table dead_emails (
    id bigint not null,
    enqueued_at timestamp with time zone not null,
    dead_at timestamp with time zone not null default clock_timestamp(),
    attempt integer not null,
    error text not null,
    payload jsonb not null,
    metadata jsonb
);

view messages_emails (
    id bigint,
    enqueued_at timestamp with time zone,
    due_at timestamp with time zone,
    attempt integer,
    error text,
    payload jsonb,
    metadata jsonb
);

table migration (
    version integer not null,
    name text not null,
    applied_at timestamp with time zone not null default now()
);

table queue (
    name text not null,
    max_attempts integer not null,
    lease interval not null,
    max_batch integer not null,
    created_at timestamp with time zone not null default now()
);

table queue_emails (
    id bigint not null default nextval('id_emails'::regclass),
    enqueued_at timestamp with time zone not null default clock_timestamp(),
    due_at timestamp with time zone not null default clock(),
    attempt integer not null default 0,
    released integer not null default 0,
    size integer not null,
    error text,
    payload jsonb[] not null,
    metadata jsonb[]
) with (autovacuum_vacuum_threshold=1000, autovacuum_vacuum_scale_factor=0.05);

table waiting (
    consumer text not null,
    queue text not null,
    alive bigint not null
);

sequence id_emails increment 1024 minvalue 1024 start 1024;

alter table archive_emails add constraint archive_key_emails PRIMARY KEY (id);

alter table dead_emails add constraint dead_key_emails PRIMARY KEY (id);

alter table migration add constraint migration_pkey PRIMARY KEY (version);

alter table queue add constraint queue_lease_check CHECK (((lease > '00:00:00'::interval) AND (lease <= '365 days'::interval)));

alter table queue add constraint queue_max_attempts_check CHECK ((max_attempts >= 1));

alter table queue add constraint queue_max_batch_check CHECK (((max_batch >= 1) AND (max_batch <= 1024)));

alter table queue add constraint queue_name_check CHECK ((name ~ '^[a-z][a-z0-9_.-]{0,47}$'::text));

alter table queue add constraint queue_pkey PRIMARY KEY (name);

alter table queue_emails add constraint key_emails PRIMARY KEY (id);

alter table waiting add constraint waiting_pkey PRIMARY KEY (consumer);

CREATE INDEX age_emails ON trunkline.archive_emails USING btree (archived_at);

CREATE UNIQUE INDEX archive_key_emails ON trunkline.archive_emails USING btree (id);

CREATE UNIQUE INDEX dead_key_emails ON trunkline.dead_emails USING btree (id);

CREATE INDEX due_emails ON trunkline.queue_emails USING btree (due_at, ((id + 0)));

CREATE UNIQUE INDEX key_emails ON trunkline.queue_emails USING btree (id);

CREATE UNIQUE INDEX migration_pkey ON trunkline.migration USING btree (version);

CREATE UNIQUE INDEX queue_pkey ON trunkline.queue USING btree (name);

CREATE UNIQUE INDEX waiting_pkey ON trunkline.waiting USING btree (consumer);

CREATE INDEX waiting_queue ON trunkline.waiting USING btree (queue);

function ack(queue text, id bigint, attempt integer) returns void language sql volatile as  select trunkline.settle('ack', queue, array[id], array[attempt]) ;

function ack_many(queue text, ids bigint[], attempts integer[]) returns void language sql volatile as  select trunkline.settle('ack', queue, ids, attempts) ;

function add_metadata(queue text) returns void language plpgsql volatile as 
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
end ;

function alter_queue(queue text, max_attempts integer DEFAULT NULL::integer, lease interval DEFAULT NULL::interval, max_batch integer DEFAULT NULL::integer) returns void language plpgsql volatile as 
begin
    perform trunkline.check_queue(queue);
    update trunkline.queue q
    set max_attempts = coalesce(alter_queue.max_attempts, q.max_attempts),
        lease = coalesce(alter_queue.lease, q.lease),
        max_batch = coalesce(alter_queue.max_batch, q.max_batch)
    where q.name = alter_queue.queue;
    perform trunkline.install_queue(queue);
end ;

function archive(queue text, id bigint, attempt integer) returns void language sql volatile as  select trunkline.settle('archive', queue, array[id], array[attempt]) ;

function archive_many(queue text, ids bigint[], attempts integer[]) returns void language sql volatile as  select trunkline.settle('archive', queue, ids, attempts) ;

function bury(queue text, id bigint, attempt integer, reason text DEFAULT ''::text) returns void language sql volatile as  select trunkline.settle('bury', queue, array[id], array[attempt], ', array[$4]', null, reason) ;

function check_metadata(metadata jsonb) returns jsonb language plpgsql immutable as 
begin
    if jsonb_typeof(metadata) <> 'object' then
        raise exception 'metadata is an object, not %', metadata using errcode = 'invalid_parameter_value',
            hint = 'Pass names and texts, as in {"traceparent": "00-…"}, or null for none.';
    elsif length(metadata::text) > 16384 then
        raise exception 'metadata of % characters is too large', length(metadata::text) using errcode = 'program_limit_exceeded',
            hint = 'The metadata of a message has at most 16,384 characters. Put what is larger into the payload.';
    end if;
    return metadata;
end ;

function check_n(n integer) returns integer language plpgsql immutable as 
begin
    if n is null or n < 0 then
        raise exception 'n is %, but a number of messages is at least 0', coalesce(n::text, 'null')
            using errcode = 'invalid_parameter_value', hint = 'Ask for as many messages as you can handle at a time.';
    end if;
    return n;
end ;

function check_queue(queue text) returns void language plpgsql stable as 
begin
    if queue is null or to_regclass(format('trunkline.%I', 'queue_' || queue)) is null then
        raise exception 'there is no queue %', coalesce(quote_literal(queue), 'NULL')
            using errcode = 'undefined_table',
                  hint = 'Create it with: select trunkline.create_queue(''name'', ''jsonb'')';
    end if;
end ;

function clock() returns timestamp with time zone language sql volatile as RETURN CASE WHEN (pg_current_xact_id() IS NOT NULL) THEN clock_timestamp() ELSE NULL::timestamp with time zone END;

function create_queue(queue text, payload regtype DEFAULT 'bytea'::regtype, max_attempts integer DEFAULT 10, lease interval DEFAULT '00:00:30'::interval, max_batch integer DEFAULT 1024) returns void language plpgsql volatile as 
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
    perform trunkline.add_metadata(queue);
    perform trunkline.install_queue(queue);
end ;

function dead_letters(queue text, after bigint DEFAULT 0, n integer DEFAULT 100) returns TABLE(id bigint, enqueued_at timestamp with time zone, dead_at timestamp with time zone, attempt integer, error text, payload text, metadata jsonb) language plpgsql volatile as 
begin
    perform trunkline.check_queue(queue);
    return query execute format(
        'select d.id, d.enqueued_at, d.dead_at, d.attempt, d.error, d.payload::text, d.metadata from trunkline.%I d
         where d.id > $1 order by d.id limit $2', 'dead_' || queue) using after, trunkline.check_n(n);
end ;

function discard(queue text, ids bigint[] DEFAULT NULL::bigint[]) returns bigint language plpgsql volatile as 
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('delete from trunkline.%I d where $1 is null or d.id = any ($1)', 'dead_' || queue) using ids;
    get diagnostics count = row_count;
    return count;
end ;

function do_ack_emails(ids bigint[], sizes integer[], attempts integer[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
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
                with held as (
        delete from trunkline.queue_emails q using 
        unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
        where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
          and q.attempt = d.attempt and q.error is null and q.due_at > clock_timestamp()
          and q.id <> all (settled_ids)  returning q.id, q.size, d.attempt as under )
                select array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
                       coalesce(sum(h.size), 0) as size
                into more from held h;
                settled := settled + more.size;
                settled_ids := settled_ids || more.ids;
                settled_sizes := settled_sizes || more.sizes;
                settled_attempts := settled_attempts || more.attempts;
                exit when settled >= asked or pass = 2;
                perform trunkline."do_carve_emails"(d.id, d.id + d.size, d.attempt, true)
                from unnest(ids, sizes, attempts) d(id, size, attempt);
            end loop;
            return query select * from unnest(settled_ids, settled_sizes, settled_attempts);
        end ;

function do_archive_emails(ids bigint[], sizes integer[], attempts integer[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
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
                with held as (
        delete from trunkline.queue_emails q using 
        unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
        where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
          and q.attempt = d.attempt and q.error is null and q.due_at > clock_timestamp()
          and q.id <> all (settled_ids)  returning q.id, q.enqueued_at, q.attempt, q.released, q.size, q.payload, q.metadata, d.attempt as under
        ), kept as (
            insert into trunkline.archive_emails (id, enqueued_at, attempt, payload, metadata)
            select h.id + m.k, h.enqueued_at, h.attempt - h.released, m.payload, m.metadata
            from held h, lateral (select generate_series(0, h.size - 1) as k, unnest(h.payload) as payload, unnest(h.metadata) as metadata) m )
                select array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
                       coalesce(sum(h.size), 0) as size
                into more from held h;
                settled := settled + more.size;
                settled_ids := settled_ids || more.ids;
                settled_sizes := settled_sizes || more.sizes;
                settled_attempts := settled_attempts || more.attempts;
                exit when settled >= asked or pass = 2;
                perform trunkline."do_carve_emails"(d.id, d.id + d.size, d.attempt, true)
                from unnest(ids, sizes, attempts) d(id, size, attempt);
            end loop;
            return query select * from unnest(settled_ids, settled_sizes, settled_attempts);
        end ;

function do_batch_emails(payloads jsonb[], delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[]) returns SETOF bigint language plpgsql volatile set enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
        #variable_conflict use_variable
        begin
            if delay is null or delay < '0' or delay > '36500 days' then
                raise exception 'a delay of % is out of bounds', delay using errcode = 'invalid_parameter_value',
                    hint = 'A delay is at least zero and at most 36500 days.';
            end if;
            if metadata is not null then
                if cardinality(metadata) is distinct from cardinality(payloads) then
                    raise exception '% payloads have metadata for %', cardinality(payloads), cardinality(metadata)
                        using errcode = 'invalid_parameter_value', hint = 'Pass one for each payload, null for those without.';
                end if;
                perform trunkline.check_metadata(m) from unnest(metadata) m;
            end if;
            return query
                with message as (
                    select m.nr, m.payload, m.metadata,
                           trunkline.payload_bytes('emails', pg_column_size(m.payload)) + coalesce(pg_column_size(m.metadata), 0) as bytes
                    from (select generate_series(1, cardinality(payloads)) as nr, unnest(payloads) as payload, unnest(metadata) as metadata) m
                ), placed as (
                    select m.*, (sum(m.bytes) over (order by m.nr) - m.bytes)::bigint / 262144 as page from message m
                ), batch as (
                    insert into trunkline.queue_emails (due_at, size, payload, metadata)
                    select trunkline.clock() + delay, count(*), array_agg(p.payload order by p.nr),
                           case when count(p.metadata) > 0 then array_agg(p.metadata order by p.nr) filter (where metadata is not null) end
                    from placed p group by p.page, p.bytes > 262144, (p.nr - 1) / 1024 order by min(p.nr)
                    returning id, size
                )
                select b.id + k from batch b, generate_series(0, b.size - 1) k order by b.id, k;
            if cardinality(payloads) > 0 then
                perform pg_notify('trunkline.emails', '');
            end if;
        end ;

function do_bury_emails(ids bigint[], sizes integer[], attempts integer[], reasons text[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
        #variable_conflict use_variable
        declare
            asked bigint := (select sum(s) from unnest(sizes) s);
            settled_ids bigint[] := '{}';
            settled_sizes int[] := '{}';
            settled_attempts int[] := '{}';
            more record;
        begin
            for pass in 1..2 loop
                with gone as (
                    delete from trunkline.queue_emails q using unnest(ids, sizes, attempts, reasons) d(id, size, attempt, reason)
                    where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
                      and q.attempt = d.attempt and q.error is null and q.due_at > clock_timestamp()
                    returning q.id, q.enqueued_at, q.attempt, q.released, q.size, q.payload, q.metadata, d.reason
                ), dead as (
                    insert into trunkline.dead_emails (id, enqueued_at, attempt, error, payload, metadata)
                    select g.id + m.k, g.enqueued_at, g.attempt - g.released, coalesce(g.reason, ''), m.payload, m.metadata
                    from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m
                )
                select array_agg(g.id) as ids, array_agg(g.size) as sizes, array_agg(g.attempt) as attempts into more from gone g;
                settled_ids := settled_ids || more.ids;
                settled_sizes := settled_sizes || more.sizes;
                settled_attempts := settled_attempts || more.attempts;
                exit when pass = 2 or (select coalesce(sum(s), 0) from unnest(settled_sizes) s) >= asked;
                perform trunkline."do_carve_emails"(d.id, d.id + d.size, d.attempt, true) from unnest(ids, sizes, attempts) d(id, size, attempt);
            end loop;
            return query select * from unnest(settled_ids, settled_sizes, settled_attempts);
        end ;

function do_bury_emails(row_id bigint, reason text) returns void language plpgsql volatile as 
        #variable_conflict use_variable
        begin
            with gone as (
                delete from trunkline.queue_emails q where q.id = row_id
                returning q.id, q.enqueued_at, q.attempt, q.released, q.size, q.payload, q.metadata)
            insert into trunkline.dead_emails (id, enqueued_at, attempt, error, payload, metadata)
            select g.id + m.k, g.enqueued_at, g.attempt - g.released, reason, m.payload, m.metadata
            from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m;
        end ;

function do_carve_emails(low bigint, high bigint, of_attempt integer, leased boolean) returns void language plpgsql volatile set enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
        #variable_conflict use_variable
        declare
            edge bigint; r trunkline.queue_emails%rowtype; seen record;
        begin
            foreach edge in array array[low, high] loop
                loop
                    select q.id, q.size, q.attempt, q.error, q.due_at into seen
                    from trunkline.queue_emails q where q.id < edge order by q.id desc limit 1;
                    exit when not found or seen.id + seen.size <= edge or seen.attempt <> of_attempt
                           or leased and (seen.error is not null or seen.due_at <= clock_timestamp());
                    if leased then
                        select * into r from trunkline.queue_emails q where q.id = seen.id for update;
                    else
                        -- Whoever holds it settles it.
                        select * into r from trunkline.queue_emails q where q.id = seen.id for update skip locked;
                        exit when not found;
                    end if;
                    continue when not found or r.size <> seen.size;
                    if r.attempt = of_attempt and (not leased or r.error is null and r.due_at > clock_timestamp()) then
                        perform trunkline."do_split_emails"(r.id, array[low - r.id, high - r.id]::int[]);
                    end if;
                    exit;
                end loop;
            end loop;
        end ;

function do_charge_emails(ids bigint[], sizes integer[], attempts integer[], delays interval[], errors text[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
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
                with held as ( select * from trunkline."do_fault_emails"(ids, sizes, attempts, delays, errors) )
                select array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
                       coalesce(sum(h.size), 0) as size
                into more from held h;
                settled := settled + more.size;
                settled_ids := settled_ids || more.ids;
                settled_sizes := settled_sizes || more.sizes;
                settled_attempts := settled_attempts || more.attempts;
                exit when settled >= asked or pass = 2;
                perform trunkline."do_carve_emails"(d.id, d.id + d.size, d.attempt, false)
                from unnest(ids, sizes, attempts) d(id, size, attempt);
            end loop;
            return query select * from unnest(settled_ids, settled_sizes, settled_attempts);
        end ;

function do_cut_emails(n integer, floor timestamp with time zone) returns void language plpgsql volatile set enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
        #variable_conflict use_variable
        begin
            perform trunkline."do_gather_emails"(n, floor, 1);
        end ;

function do_extend_emails(ids bigint[], sizes integer[], attempts integer[], lease interval) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
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
                with held as (
        update trunkline.queue_emails q set due_at = clock_timestamp() + lease from 
        unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
        where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
          and q.attempt = d.attempt and q.error is null and q.due_at > clock_timestamp()
          and q.id <> all (settled_ids)  returning q.id, q.size, d.attempt as under )
                select array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
                       coalesce(sum(h.size), 0) as size
                into more from held h;
                settled := settled + more.size;
                settled_ids := settled_ids || more.ids;
                settled_sizes := settled_sizes || more.sizes;
                settled_attempts := settled_attempts || more.attempts;
                exit when settled >= asked or pass = 2;
                perform trunkline."do_carve_emails"(d.id, d.id + d.size, d.attempt, true)
                from unnest(ids, sizes, attempts) d(id, size, attempt);
            end loop;
            return query select * from unnest(settled_ids, settled_sizes, settled_attempts);
        end ;

function do_fail_emails(ids bigint[], sizes integer[], attempts integer[], delays interval[], errors text[]) returns TABLE(id bigint, size integer, under integer) language plpgsql volatile as 
        #variable_conflict use_variable
        begin
            return query
            with failed as materialized (
                select q.ctid as tid, q.attempt as under, q.attempt + (not true)::int as attempt,
                       q.attempt + (not true)::int - q.released >= 10 as spent, d.delay, d.error
                from unnest(ids, sizes, attempts, delays, errors) d(id, size, attempt, delay, error)
                join trunkline.queue_emails q
                  on q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size and q.attempt = d.attempt
                 and (true and q.error is null and q.due_at > clock_timestamp()
                      or not true and (q.attempt = 0 or q.error is not null or q.due_at <= clock_timestamp()))
                for update of q 
            ), again as (
                update trunkline.queue_emails q
                set due_at = trunkline.clock() + f.delay, attempt = f.attempt, error = coalesce(f.error, '')
                from failed f where q.ctid = f.tid and not f.spent returning q.id, q.size, f.under
            ), gone as (
                delete from trunkline.queue_emails q using failed f
                where q.ctid = f.tid and f.spent
                returning q.id, q.enqueued_at, q.size, q.payload, q.metadata, f.under, f.attempt - q.released as charged, f.error as reason
            ), dead as (
                insert into trunkline.dead_emails (id, enqueued_at, attempt, error, payload, metadata)
                select g.id + m.k, g.enqueued_at, g.charged, coalesce(g.reason, ''), m.payload, m.metadata
                from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m
            )
            select a.id, a.size, a.under from again a union all select g.id, g.size, g.under from gone g;
        end ;

function do_fault_emails(ids bigint[], sizes integer[], attempts integer[], delays interval[], errors text[]) returns TABLE(id bigint, size integer, under integer) language plpgsql volatile as 
        #variable_conflict use_variable
        begin
            return query
            with failed as materialized (
                select q.ctid as tid, q.attempt as under, q.attempt + (not false)::int as attempt,
                       q.attempt + (not false)::int - q.released >= 10 as spent, d.delay, d.error
                from unnest(ids, sizes, attempts, delays, errors) d(id, size, attempt, delay, error)
                join trunkline.queue_emails q
                  on q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size and q.attempt = d.attempt
                 and (false and q.error is null and q.due_at > clock_timestamp()
                      or not false and (q.attempt = 0 or q.error is not null or q.due_at <= clock_timestamp()))
                for update of q skip locked
            ), again as (
                update trunkline.queue_emails q
                set due_at = trunkline.clock() + f.delay, attempt = f.attempt, error = coalesce(f.error, '')
                from failed f where q.ctid = f.tid and not f.spent returning q.id, q.size, f.under
            ), gone as (
                delete from trunkline.queue_emails q using failed f
                where q.ctid = f.tid and f.spent
                returning q.id, q.enqueued_at, q.size, q.payload, q.metadata, f.under, f.attempt - q.released as charged, f.error as reason
            ), dead as (
                insert into trunkline.dead_emails (id, enqueued_at, attempt, error, payload, metadata)
                select g.id + m.k, g.enqueued_at, g.charged, coalesce(g.reason, ''), m.payload, m.metadata
                from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m
            )
            select a.id, a.size, a.under from again a union all select g.id, g.size, g.under from gone g;
        end ;

function do_gather_emails(n integer, floor timestamp with time zone, rows integer, cut boolean DEFAULT true, OUT tids tid[], OUT got integer) returns record language plpgsql volatile as 
        #variable_conflict use_variable
        declare
            until timestamptz := clock_timestamp();
            line record;
        begin
            loop
                if rows = 1 then
                    -- One row needs no running total.
                    select 1 as locked, array[q.ctid] as tids, q.size as got, q.id as first, q.size,
                           q.attempt - q.released >= 10 as spent,
                           q.attempt > 0 and q.error is null and q.size > 1 as ran_out,
                           (q.size <= n and q.attempt - q.released < 10
                            and (q.attempt = 0 or q.error is not null or q.size = 1))::int as fitting
                    into line
                    from trunkline.queue_emails q
                    where q.due_at >= floor and q.due_at <= until
                    order by q.due_at, q.id + 0 limit 1 for update skip locked;
                    if not found then
                        tids := '{}';
                        return;
                    end if;
                else
                    with due as materialized (
                        select q.ctid as tid, q.id, q.due_at, q.size,
                               q.attempt - q.released >= 10 as spent,
                               q.attempt > 0 and q.error is null and q.size > 1 as ran_out
                        from trunkline.queue_emails q
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
                    perform trunkline."do_bury_emails"(line.first, 'the lease of the last attempt ran out');
                elsif line.ran_out then
                    perform trunkline."do_split_emails"(line.first, array(select generate_series(1, line.size)));
                else
                    perform trunkline."do_split_emails"(line.first, array[n]);
                end if;
            end loop;
        end ;

function do_lease_apart_emails(n integer, lease interval, floor timestamp with time zone, rows integer) returns TABLE(id bigint, attempt integer, size integer, enqueued_at timestamp with time zone, payload jsonb[], metadata jsonb[], ran_out boolean) language plpgsql volatile set enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
        #variable_conflict use_variable
        declare
            until timestamptz := clock_timestamp();
            line record;
            got int := 0;
        begin
            while n > 0 loop
                -- Locked, so that the lease below finds the same rows. What comes after one that ran out is left to the next call.
                with due as materialized (
                    select q.id, q.due_at, q.size, q.attempt > 0 and q.error is null as ran_out
                    from trunkline.queue_emails q
                    where q.due_at >= floor and q.due_at <= until
                    order by q.due_at, q.id + 0 limit rows for update skip locked
                ), line as (
                    select d.size, bool_or(d.ran_out) over (order by d.due_at, d.id) as apart from due d
                )
                select count(*)::int as seen, (count(*) filter (where not l.apart))::int as fresh,
                       (coalesce(sum(l.size) filter (where not l.apart), 0))::int as size
                into line from line l;
                exit when line.seen = 0 or line.fresh = 0 and got > 0;
                if line.fresh = 0 then
                    return query select l.id, l.attempt, l.size, l.enqueued_at, l.payload, l.metadata, true
                                 from trunkline."do_lease_emails"(1, lease, floor, 1) l;
                    return;
                end if;
                line.size := least(n, line.size);
                return query select l.id, l.attempt, l.size, l.enqueued_at, l.payload, l.metadata, false
                             from trunkline."do_lease_emails"(line.size, lease, floor, line.fresh) l;
                exit when line.fresh < line.seen;
                n := n - line.size;
                got := got + line.size;
                rows := least(n, 1 + n::bigint * line.seen / line.size);
            end loop;
        end ;

function do_lease_emails(n integer, lease interval DEFAULT NULL::interval, floor timestamp with time zone DEFAULT '-infinity'::timestamp with time zone, rows integer DEFAULT 1) returns TABLE(id bigint, attempt integer, size integer, enqueued_at timestamp with time zone, due_at timestamp with time zone, payload jsonb[], metadata jsonb[]) language plpgsql volatile set enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
        #variable_conflict use_variable
        declare
            tids tid[];
            got int;
            term interval := coalesce(lease, '00:00:30'::interval);
        begin
            if term <= '0' or term > '365 days' then
                raise exception 'a lease of % is out of bounds', term using errcode = 'invalid_parameter_value',
                    hint = 'A lease is more than zero and at most 365 days.';
            end if;
            while n > 0 loop
                select g.tids, g.got into tids, got from trunkline."do_gather_emails"(n, floor, rows) g;
                exit when tids = '{}';
                return query
                    with leased as (
                        update trunkline.queue_emails q
                        set due_at = clock_timestamp() + term, attempt = q.attempt + 1, error = null
                        from unnest(tids) with ordinality d(tid, nr)
                        where q.ctid = d.tid returning d.nr, q.id, q.attempt, q.size, q.enqueued_at, q.due_at, q.payload, q.metadata)
                    select l.id, l.attempt, l.size, l.enqueued_at, l.due_at, l.payload, l.metadata from leased l order by l.nr;
                n := n - got;
                rows := least(n, 1 + n::bigint * cardinality(tids) / got);
            end loop;
        end ;

function do_look_emails(floor timestamp with time zone) returns TABLE(oldest timestamp with time zone, candidate timestamp with time zone, due_in double precision, running bigint, next bigint, cost double precision) language plpgsql volatile set enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
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
                    select q.due_at from trunkline.queue_emails q where q.due_at >= floor order by q.due_at, q.id + 0 limit 1) o on true;
        end ;

function do_peek_emails(after_due timestamp with time zone, after_id bigint, n bigint) returns SETOF queue_emails language plpgsql volatile set enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
        #variable_conflict use_variable
        begin
            return query select q.* from trunkline.queue_emails q
                where (q.due_at, q.id + 0) > (after_due, after_id) order by q.due_at, q.id + 0 limit n;
        end ;

function do_release_emails(ids bigint[], sizes integer[], attempts integer[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
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
                with held as (
        update trunkline.queue_emails q set due_at = trunkline.clock(), released = q.released + 1, error = ''
        from 
        unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
        where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
          and q.attempt = d.attempt and q.error is null and q.due_at > clock_timestamp()
          and q.id <> all (settled_ids)  returning q.id, q.size, d.attempt as under )
                select array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
                       coalesce(sum(h.size), 0) as size
                into more from held h;
                settled := settled + more.size;
                settled_ids := settled_ids || more.ids;
                settled_sizes := settled_sizes || more.sizes;
                settled_attempts := settled_attempts || more.attempts;
                exit when settled >= asked or pass = 2;
                perform trunkline."do_carve_emails"(d.id, d.id + d.size, d.attempt, true)
                from unnest(ids, sizes, attempts) d(id, size, attempt);
            end loop;
            return query select * from unnest(settled_ids, settled_sizes, settled_attempts);
        end ;

function do_retry_emails(ids bigint[], sizes integer[], attempts integer[], delays interval[], errors text[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
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
                with held as (
        select * from trunkline."do_fail_emails"(ids, sizes, attempts, delays, errors) )
                select array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
                       coalesce(sum(h.size), 0) as size
                into more from held h;
                settled := settled + more.size;
                settled_ids := settled_ids || more.ids;
                settled_sizes := settled_sizes || more.sizes;
                settled_attempts := settled_attempts || more.attempts;
                exit when settled >= asked or pass = 2;
                perform trunkline."do_carve_emails"(d.id, d.id + d.size, d.attempt, true)
                from unnest(ids, sizes, attempts) d(id, size, attempt);
            end loop;
            return query select * from unnest(settled_ids, settled_sizes, settled_attempts);
        end ;

function do_split_emails(row_id bigint, cuts integer[]) returns void language plpgsql volatile as 
        #variable_conflict use_variable
        declare
            r trunkline.queue_emails%rowtype;
            whole jsonb[];
            whole_metadata jsonb[];
            whole_size int;
            ends int[];
            start int := 0;
            stop int;
        begin
            select * into r from trunkline.queue_emails q where q.id = row_id;
            whole := r.payload;
            whole_metadata := r.metadata;
            whole_size := r.size;
            select array_agg(distinct c order by c) into ends from (
                select unnest(cuts) union all
                select generate_series(1, 32) * ((whole_size + 31) / 32) union all
                select whole_size) x(c)
            where c > 0 and c <= whole_size;
            foreach stop in array ends loop
                r.size := stop - start;
                r.payload := whole[start + 1 : stop];
                r.metadata := whole_metadata[start + 1 : stop];
                if array_remove(r.metadata, null) = '{}' then
                    r.metadata := null;
                end if;
                if start = 0 then
                    update trunkline.queue_emails q set size = r.size, payload = r.payload, metadata = r.metadata where q.id = row_id;
                else
                    r.id := row_id + start;
                    insert into trunkline.queue_emails select r.*;
                end if;
                start := stop;
            end loop;
        end ;

function do_take_emails(n integer, floor timestamp with time zone DEFAULT '-infinity'::timestamp with time zone, rows integer DEFAULT 1, cut boolean DEFAULT true) returns TABLE(id bigint, attempt integer, size integer, enqueued_at timestamp with time zone, payload jsonb[], metadata jsonb[]) language plpgsql volatile set enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
        #variable_conflict use_variable
        declare
            tids tid[];
            got int;
        begin
            while n > 0 loop
                if cut then
                    select g.tids, g.got into tids, got from trunkline."do_gather_emails"(n, floor, rows) g;
                else
                    begin
                        select g.tids, g.got into tids, got from trunkline."do_gather_emails"(n, floor, rows, false) g;
                    exception when sqlstate 'TL000' then
                        rows := sqlerrm::int;
                        continue when rows > 0;
                        return query select null::bigint, 0, 0, null::timestamptz, null::jsonb[], null::jsonb[];
                        return;
                    end;
                end if;
                exit when tids = '{}';
                return query
                    with gone as (
                        delete from trunkline.queue_emails q using unnest(tids) with ordinality d(tid, nr)
                        where q.ctid = d.tid returning d.nr, q.id, q.attempt, q.size, q.enqueued_at, q.payload, q.metadata)
                    select g.id, g.attempt, g.size, g.enqueued_at, g.payload, g.metadata from gone g order by g.nr;
                n := n - got;
                rows := least(n, 1 + n::bigint * cardinality(tids) / got);
            end loop;
        end ;

function drop_queue(queue text) returns void language plpgsql volatile set lock_timeout=10s as 
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
              'batch', 'split', 'carve', 'bury', 'gather', 'cut', 'take', 'lease', 'lease_apart', 'look', 'peek', 'ack', 'archive', 'release',
              'retry', 'extend', 'charge', 'fail', 'fault']) verb))
    loop
        execute format('drop function %s', routine);
    end loop;
    execute format('drop view trunkline.%I', 'messages_' || queue);
    execute format('drop table trunkline.%I, trunkline.%I, trunkline.%I', 'queue_' || queue, 'dead_' || queue, 'archive_' || queue);
    execute format('drop domain if exists trunkline.%I', 'payload_' || queue);
    delete from trunkline.queue q where q.name = queue;
    perform pg_notify('trunkline.' || queue, ''); -- so that sleepers learn of it
end ;

function enqueue(queue text, payload anyelement, delay interval DEFAULT '00:00:00'::interval, metadata jsonb DEFAULT NULL::jsonb) returns bigint language plpgsql volatile as 
declare
    id bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('select trunkline.%I(array[$1::%s], $2, $3)', 'do_batch_' || queue, trunkline.payload_type(queue))
        into id using payload, delay, case when metadata is not null then array[metadata] end;
    return id;
end ;

function enqueue(queue text, payload text, delay interval DEFAULT '00:00:00'::interval, metadata jsonb DEFAULT NULL::jsonb) returns bigint language plpgsql volatile as 
declare
    id bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('select trunkline.%I(array[$1::%s], $2, $3)', 'do_batch_' || queue, trunkline.payload_type(queue))
        into id using payload, delay, case when metadata is not null then array[metadata] end;
    return id;
end ;

function enqueue_many(queue text, payloads anyarray, delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[]) returns SETOF bigint language plpgsql volatile as 
begin
    perform trunkline.check_queue(queue);
    return query execute format('select * from trunkline.%I($1::%s[], $2, $3)', 'do_batch_' || queue, trunkline.payload_type(queue))
        using payloads, delay, metadata;
end ;

function enqueue_many(queue text, payloads text[], delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[]) returns SETOF bigint language plpgsql volatile as 
begin
    perform trunkline.check_queue(queue);
    return query execute format('select * from trunkline.%I($1::%s[], $2, $3)', 'do_batch_' || queue, trunkline.payload_type(queue))
        using payloads, delay, metadata;
end ;

function extend(queue text, id bigint, attempt integer, lease interval) returns void language plpgsql volatile as 
begin
    if lease is null or lease <= '0' or lease > '365 days' then
        raise exception 'a lease of % is out of bounds', lease using errcode = 'invalid_parameter_value',
            hint = 'A lease is more than zero and at most 365 days.';
    end if;
    perform trunkline.settle('extend', queue, array[id], array[attempt], ', $3', lease);
end ;

function floor(queue text) returns timestamp with time zone language plpgsql volatile as 
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
end ;

function hand_over(queue text, element bytea, metadata jsonb DEFAULT NULL::jsonb) returns bigint language plpgsql volatile set enable_seqscan=off jit=off as 
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
end ;

function install_bury(queue text) returns void language plpgsql volatile set search_path=pg_catalog as 
declare
    text_of text := $t$
        create or replace function trunkline.{bury}(ids bigint[], sizes int[], attempts int[], reasons text[])
        returns table (id bigint, size int, attempt int) language plpgsql
        set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
        set jit = off set plan_cache_mode = force_generic_plan as $f$
        #variable_conflict use_variable
        declare
            asked bigint := (select sum(s) from unnest(sizes) s);
            settled_ids bigint[] := '{}';
            settled_sizes int[] := '{}';
            settled_attempts int[] := '{}';
            more record;
        begin
            for pass in 1..2 loop
                with gone as (
                    delete from trunkline.{table} q using unnest(ids, sizes, attempts, reasons) d(id, size, attempt, reason)
                    where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
                      and q.attempt = d.attempt and q.error is null and q.due_at > clock_timestamp()
                    returning q.id, q.enqueued_at, q.attempt, q.released, q.size, q.payload, q.metadata, d.reason
                ), dead as (
                    insert into trunkline.{dead} (id, enqueued_at, attempt, error, payload, metadata)
                    select g.id + m.k, g.enqueued_at, g.attempt - g.released, coalesce(g.reason, ''), m.payload, m.metadata
                    from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m
                )
                select array_agg(g.id) as ids, array_agg(g.size) as sizes, array_agg(g.attempt) as attempts into more from gone g;
                settled_ids := settled_ids || more.ids;
                settled_sizes := settled_sizes || more.sizes;
                settled_attempts := settled_attempts || more.attempts;
                exit when pass = 2 or (select coalesce(sum(s), 0) from unnest(settled_sizes) s) >= asked;
                perform trunkline.{carve}(d.id, d.id + d.size, d.attempt, true) from unnest(ids, sizes, attempts) d(id, size, attempt);
            end loop;
            return query select * from unnest(settled_ids, settled_sizes, settled_attempts);
        end $f$ $t$;
begin
    text_of := replace(text_of, '{table}', quote_ident('queue_' || queue));
    text_of := replace(text_of, '{dead}', quote_ident('dead_' || queue));
    execute regexp_replace(text_of, '\{(bury|carve)\}', '"do_\1_' || queue || '"', 'g');
end ;

function install_lease_apart(queue text) returns void language plpgsql volatile set search_path=pg_catalog as 
declare
    text_of text := $t$
        create or replace function trunkline.{lease_apart}(n int, lease interval, floor timestamptz, rows int)
        returns table (id bigint, attempt int, size int, enqueued_at timestamptz, payload {type}[], metadata jsonb[], ran_out bool) language plpgsql
        set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
        set jit = off set plan_cache_mode = force_generic_plan as $f$
        #variable_conflict use_variable
        declare
            until timestamptz := clock_timestamp();
            line record;
            got int := 0;
        begin
            while n > 0 loop
                -- Locked, so that the lease below finds the same rows. What comes after one that ran out is left to the next call.
                with due as materialized (
                    select q.id, q.due_at, q.size, q.attempt > 0 and q.error is null as ran_out
                    from trunkline.{table} q
                    where q.due_at >= floor and q.due_at <= until
                    order by q.due_at, q.id + 0 limit rows for update skip locked
                ), line as (
                    select d.size, bool_or(d.ran_out) over (order by d.due_at, d.id) as apart from due d
                )
                select count(*)::int as seen, (count(*) filter (where not l.apart))::int as fresh,
                       (coalesce(sum(l.size) filter (where not l.apart), 0))::int as size
                into line from line l;
                exit when line.seen = 0 or line.fresh = 0 and got > 0;
                if line.fresh = 0 then
                    return query select l.id, l.attempt, l.size, l.enqueued_at, l.payload, l.metadata, true
                                 from trunkline.{lease}(1, lease, floor, 1) l;
                    return;
                end if;
                line.size := least(n, line.size);
                return query select l.id, l.attempt, l.size, l.enqueued_at, l.payload, l.metadata, false
                             from trunkline.{lease}(line.size, lease, floor, line.fresh) l;
                exit when line.fresh < line.seen;
                n := n - line.size;
                got := got + line.size;
                rows := least(n, 1 + n::bigint * line.seen / line.size);
            end loop;
        end $f$ $t$;
begin
    text_of := replace(text_of, '{table}', quote_ident('queue_' || queue));
    text_of := replace(text_of, '{type}', trunkline.payload_type(queue)::text);
    execute regexp_replace(text_of, '\{(lease|lease_apart)\}', '"do_\1_' || queue || '"', 'g');
end ;

function install_queue(queue text) returns void language plpgsql volatile as 
begin
    perform trunkline.install_verbs(queue);
    perform trunkline.install_bury(queue);
    perform trunkline.install_lease_apart(queue);
end ;

function install_verbs(queue text) returns void language plpgsql volatile set search_path=pg_catalog as 
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
                returning q.id, q.enqueued_at, q.size, q.payload, q.metadata, f.under, f.attempt - q.released as charged, f.error as reason
            ), dead as (
                insert into trunkline.{dead} (id, enqueued_at, attempt, error, payload, metadata)
                select g.id + m.k, g.enqueued_at, g.charged, coalesce(g.reason, ''), m.payload, m.metadata
                from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m
            )
            select a.id, a.size, a.under from again a union all select g.id, g.size, g.under from gone g;
        end $f$ $t$;
begin
    select * into strict settings from trunkline.queue q where q.name = install_verbs.queue;
    foreach text_of in array array[

    -- One batch or several, for callers that have no client library: wakes whoever listens when the transaction commits.
    -- A batch ends after {max_batch} messages or some 256 KiB.
    $t$ create or replace function trunkline.{batch}(payloads {type}[], delay interval default '0', metadata jsonb[] default null)
        returns setof bigint language plpgsql {planner} as $f$
        #variable_conflict use_variable
        begin
            if delay is null or delay < '0' or delay > '36500 days' then
                raise exception 'a delay of % is out of bounds', delay using errcode = 'invalid_parameter_value',
                    hint = 'A delay is at least zero and at most 36500 days.';
            end if;
            if metadata is not null then
                if cardinality(metadata) is distinct from cardinality(payloads) then
                    raise exception '% payloads have metadata for %', cardinality(payloads), cardinality(metadata)
                        using errcode = 'invalid_parameter_value', hint = 'Pass one for each payload, null for those without.';
                end if;
                perform trunkline.check_metadata(m) from unnest(metadata) m;
            end if;
            return query
                with message as (
                    select m.nr, m.payload, m.metadata,
                           trunkline.payload_bytes({literal}, pg_column_size(m.payload)) + coalesce(pg_column_size(m.metadata), 0) as bytes
                    from (select generate_series(1, cardinality(payloads)) as nr, unnest(payloads) as payload, unnest(metadata) as metadata) m
                ), placed as (
                    select m.*, (sum(m.bytes) over (order by m.nr) - m.bytes)::bigint / 262144 as page from message m
                ), batch as (
                    insert into trunkline.{table} (due_at, size, payload, metadata)
                    select trunkline.clock() + delay, count(*), {payloads},
                           case when count(p.metadata) > 0 then array_agg(p.metadata order by p.nr) filter (where metadata is not null) end
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
            whole_metadata jsonb[];
            whole_size int;
            ends int[];
            start int := 0;
            stop int;
        begin
            select * into r from trunkline.{table} q where q.id = row_id;
            whole := r.payload;
            whole_metadata := r.metadata;
            whole_size := r.size;
            select array_agg(distinct c order by c) into ends from (
                select unnest(cuts) union all
                select generate_series(1, 32) * ((whole_size + 31) / 32) union all
                select whole_size) x(c)
            where c > 0 and c <= whole_size;
            foreach stop in array ends loop
                r.size := stop - start;
                r.payload := whole[start + 1 : stop];
                r.metadata := whole_metadata[start + 1 : stop];
                if array_remove(r.metadata, null) = '{}' then
                    r.metadata := null;
                end if;
                if start = 0 then
                    update trunkline.{table} q set size = r.size, payload = r.payload, metadata = r.metadata where q.id = row_id;
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
                returning q.id, q.enqueued_at, q.attempt, q.released, q.size, q.payload, q.metadata)
            insert into trunkline.{dead} (id, enqueued_at, attempt, error, payload, metadata)
            select g.id + m.k, g.enqueued_at, g.attempt - g.released, reason, m.payload, m.metadata
            from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m;
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
        returns table (id bigint, attempt int, size int, enqueued_at timestamptz, payload {type}[], metadata jsonb[])
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
                        return query select null::bigint, 0, 0, null::timestamptz, null::{type}[], null::jsonb[];
                        return;
                    end;
                end if;
                exit when tids = '{}';
                return query
                    with gone as (
                        delete from trunkline.{table} q using unnest(tids) with ordinality d(tid, nr)
                        where q.ctid = d.tid returning d.nr, q.id, q.attempt, q.size, q.enqueued_at, q.payload, q.metadata)
                    select g.id, g.attempt, g.size, g.enqueued_at, g.payload, g.metadata from gone g order by g.nr;
                n := n - got;
                rows := least(n, 1 + n::bigint * cardinality(tids) / got);
            end loop;
        end $f$ $t$,

    -- Leases up to n messages, each of them charged with an attempt.
    $t$ create or replace function trunkline.{lease}(n int, lease interval default null, floor timestamptz default '-infinity', rows int default 1)
        returns table (id bigint, attempt int, size int, enqueued_at timestamptz, due_at timestamptz, payload {type}[], metadata jsonb[])
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
                        where q.ctid = d.tid returning d.nr, q.id, q.attempt, q.size, q.enqueued_at, q.due_at, q.payload, q.metadata)
                    select l.id, l.attempt, l.size, l.enqueued_at, l.due_at, l.payload, l.metadata from leased l order by l.nr;
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
        delete from trunkline.{table} q using $t$ || held || $t$ returning q.id, q.enqueued_at, q.attempt, q.released, q.size, q.payload, q.metadata, d.attempt as under
        ), kept as (
            insert into trunkline.{archive} (id, enqueued_at, attempt, payload, metadata)
            select h.id + m.k, h.enqueued_at, h.attempt - h.released, m.payload, m.metadata
            from held h, lateral (select generate_series(0, h.size - 1) as k, unnest(h.payload) as payload, unnest(h.metadata) as metadata) m $t$),

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
end ;

function lease(queue text, n integer DEFAULT 1, lease interval DEFAULT NULL::interval) returns TABLE(id bigint, attempt integer, enqueued_at timestamp with time zone, due_at timestamp with time zone, payload text, metadata jsonb) language plpgsql volatile as 
begin
    perform trunkline.check_queue(queue);
    return query execute format($q$
        select b.id + m.k, b.attempt, b.enqueued_at, b.due_at, m.payload::text, m.metadata
        from trunkline.%I($1, $2, $3) b,
             lateral (select generate_series(0, b.size - 1) as k, unnest(b.payload) as payload, unnest(b.metadata) as metadata) m $q$,
        'do_lease_' || queue)
        using trunkline.check_n(n), lease, trunkline.floor(queue);
end ;

function messages(queue text) returns TABLE(id bigint, enqueued_at timestamp with time zone, due_at timestamp with time zone, attempt integer, error text, payload text, metadata jsonb) language plpgsql volatile as 
begin
    perform trunkline.check_queue(queue);
    return query execute format(
        'select m.id, m.enqueued_at, m.due_at, m.attempt, m.error, m.payload::text, m.metadata from trunkline.%I m order by m.due_at, m.id',
        'messages_' || queue);
end ;

function payload_bytes(queue text, bytes integer) returns bigint language plpgsql immutable as 
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
end ;

function payload_type(queue text) returns regtype language sql stable as RETURN (SELECT (a.atttypid)::regtype AS atttypid FROM pg_attribute a WHERE ((a.attrelid = (to_regclass(format('trunkline.%I'::text, ('dead_'::text || payload_type.queue))))::oid) AND (a.attname = 'payload'::name)));

function prune(queue text, age interval) returns bigint language plpgsql volatile as 
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('delete from trunkline.%I a where a.archived_at < clock_timestamp() - $1', 'archive_' || queue) using age;
    get diagnostics count = row_count;
    return count;
end ;

function purge(queue text) returns bigint language plpgsql volatile as 
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('with gone as (delete from trunkline.%I q returning q.size) select coalesce(sum(g.size), 0) from gone g',
                   'queue_' || queue) into count;
    return count;
end ;

function release(queue text, id bigint, attempt integer) returns void language plpgsql volatile as 
begin
    perform trunkline.settle('release', queue, array[id], array[attempt]);
    perform pg_notify('trunkline.' || queue, '');
end ;

function replay(queue text, ids bigint[] DEFAULT NULL::bigint[]) returns bigint language plpgsql volatile as 
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    execute format($q$
        with back as (delete from trunkline.%I d where $1 is null or d.id = any ($1) returning *)
        insert into trunkline.%I (id, enqueued_at, size, payload, metadata)
        select b.id, b.enqueued_at, 1, array[b.payload], case when b.metadata is not null then array[b.metadata] end from back b order by b.id $q$, 'dead_' || queue, 'queue_' || queue) using ids;
    get diagnostics count = row_count;
    perform pg_notify('trunkline.' || queue, '');
    return count;
end ;

function retry(queue text, id bigint, attempt integer, delay interval DEFAULT '00:00:00'::interval, error text DEFAULT ''::text) returns void language plpgsql volatile as 
begin
    if delay is null or delay < '0' or delay > '365 days' then
        raise exception 'a delay of % is out of bounds', delay using errcode = 'invalid_parameter_value',
            hint = 'A delay is at least zero and at most 365 days.';
    end if;
    perform trunkline.settle('retry', queue, array[id], array[attempt], ', array[$3], array[$4]', delay, error);
    perform pg_notify('trunkline.' || queue, '');
end ;

function settle(verb text, queue text, ids bigint[], attempts integer[], more text DEFAULT ''::text, span interval DEFAULT NULL::interval, reason text DEFAULT NULL::text) returns void language plpgsql volatile set jit=off as 
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
        with asked as materialized (
            select distinct id, attempt from unnest($1::bigint[], $2::int[]) i(id, attempt)
        ), range as (
            select min(id) as id, count(*)::int as size, attempt
            from (select id, attempt, id - row_number() over (partition by attempt order by id) as island from asked) i
            group by attempt, island
        ), settled as materialized (
            select d.id + k as id, d.attempt
            from (select array_agg(id order by id, attempt) as ids, array_agg(size order by id, attempt) as sizes,
                         array_agg(attempt order by id, attempt) as attempts from range) r,
                 trunkline.%I(r.ids, r.sizes, r.attempts %s) d, generate_series(0, d.size - 1) k
            where r.ids is not null
        )
        select array_agg(id order by id) from asked where (id, attempt) not in (select id, attempt from settled) $q$,
        'do_' || verb || '_' || queue, more)
        into lost using ids, attempts, span, reason;
    if lost is not null then
        raise exception 'the lease of message % of queue % is lost', array_to_string(lost[1:3], ', '), quote_literal(queue)
            using errcode = 'TL001', detail = 'It ended, and the message may be someone else''s now.',
                  hint = 'Roll back what was done for it. Work that takes longer needs a longer lease, or trunkline.extend.';
    end if;
end ;

function stats(queue text) returns TABLE(due bigint, delayed bigint, leased bigint, to_retry bigint, dead bigint, rows bigint, oldest_due interval) language plpgsql volatile as 
begin
    perform trunkline.check_queue(queue);
    return query execute format($q$
        select coalesce(sum(q.size) filter (where q.due_at <= t), 0)::bigint,
               coalesce(sum(q.size) filter (where q.due_at > t and q.attempt = 0), 0)::bigint,
               coalesce(sum(q.size) filter (where q.due_at > t and q.attempt > 0 and q.error is null), 0)::bigint,
               coalesce(sum(q.size) filter (where q.due_at > t and q.error is not null), 0)::bigint,
               (select count(*) from trunkline.%I), count(q.id), max(t) - min(q.due_at) filter (where q.due_at <= t)
        from (select clock_timestamp() as t) clock left join trunkline.%I q on true $q$, 'dead_' || queue, 'queue_' || queue);
end ;

function take(queue text, n integer DEFAULT 1) returns TABLE(id bigint, attempt integer, enqueued_at timestamp with time zone, payload text, metadata jsonb) language plpgsql volatile as 
begin
    perform trunkline.check_queue(queue);
    return query execute format($q$
        select b.id + m.k, b.attempt, b.enqueued_at, m.payload::text, m.metadata
        from trunkline.%I($1, $2) b,
             lateral (select generate_series(0, b.size - 1) as k, unnest(b.payload) as payload, unnest(b.metadata) as metadata) m $q$,
        'do_take_' || queue)
        using trunkline.check_n(n), trunkline.floor(queue);
end ;
