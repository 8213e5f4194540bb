-- What the files in this folder lead to, with one queue `emails`. Not to be run: it is read off the catalog by a test,
-- which writes it anew with TRUNKLINE_BLESS=1.

table archive_emails (
    id bigint not null,
    enqueued_at timestamp with time zone not null,
    archived_at timestamp with time zone not null default clock_timestamp(),
    attempt integer not null,
    payload jsonb not null,
    metadata jsonb,
    own jsonb
);

table audit (
    id bigint not null,
    at timestamp with time zone not null default clock_timestamp(),
    who text not null,
    role text not null default SESSION_USER,
    action text not null,
    queue text,
    what text not null,
    affected bigint not null,
    token uuid
);

table bucket (
    queue text not null,
    tokens double precision not null,
    filled_at timestamp with time zone not null
) with (fillfactor=50, autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0);

table dead_emails (
    id bigint not null,
    enqueued_at timestamp with time zone not null,
    dead_at timestamp with time zone not null default clock_timestamp(),
    attempt integer not null,
    error text not null,
    payload jsonb,
    metadata jsonb,
    released integer not null default 0,
    own jsonb
);

table dropped (
    queue text not null,
    next_id bigint not null
);

table floor (
    queue text not null,
    reached timestamp with time zone not null default '-infinity'::timestamp with time zone,
    shown timestamp with time zone
);

table granted (
    role text not null,
    kind text not null,
    queue text not null
);

table history (
    minute timestamp with time zone not null,
    queue text not null,
    depth bigint not null,
    oldest double precision not null,
    came double precision,
    went double precision,
    died double precision
);

view messages_emails (
    id bigint,
    enqueued_at timestamp with time zone,
    due_at timestamp with time zone,
    attempt integer,
    error text,
    payload jsonb,
    metadata jsonb,
    priority integer,
    key text
);

table migration (
    version integer not null,
    name text not null,
    applied_at timestamp with time zone not null default now(),
    functions text not null default ''::text
);

table queue (
    name text not null,
    max_attempts integer not null,
    lease interval not null,
    max_batch integer not null,
    created_at timestamp with time zone not null default now(),
    paused boolean not null default false,
    max_leased integer,
    per_second double precision,
    burst double precision,
    priorities integer not null default 1,
    head_start interval not null default '00:01:00'::interval,
    uniqueness boolean not null default false,
    lanes integer not null default 0,
    per_key integer not null default 1,
    key_per_second double precision,
    key_burst double precision,
    first_lane smallint not null default 0,
    paused_at timestamp with time zone
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

table relay (
    name text not null,
    queue text not null,
    broker text not null,
    inward boolean not null,
    "position" text,
    holder bigint,
    held_until timestamp with time zone not null default '-infinity'::timestamp with time zone,
    confirmed bigint not null default 0,
    refused bigint not null default 0,
    held bigint not null default 0,
    lag bigint,
    last_error text,
    failed_at timestamp with time zone,
    started_at timestamp with time zone not null default clock_timestamp(),
    seen_at timestamp with time zone not null default clock_timestamp()
);

table schedule (
    name text not null,
    queue text not null,
    expression text not null,
    zone text not null,
    payload text not null,
    metadata jsonb,
    missed text not null,
    paused boolean not null default false,
    next_at timestamp with time zone not null,
    placed boolean not null default false,
    last_at timestamp with time zone,
    problem text,
    created_at timestamp with time zone not null default now(),
    priority integer not null default 0,
    key text,
    placed_at timestamp with time zone,
    owed_at timestamp with time zone
) with (fillfactor=50, autovacuum_vacuum_threshold=500, autovacuum_vacuum_scale_factor=0.1);

table stripe (
    number integer not null default ((('x'::text || "left"((gen_random_uuid())::text, 8)))::bit(32))::integer,
    drains boolean not null default false,
    one boolean not null default true
);

table template (
    name text not null,
    kind text not null,
    text text not null
);

table version (
    version integer not null,
    name text not null,
    applied_at timestamp with time zone not null default now(),
    functions text not null,
    oldest integer not null
);

table waiting (
    consumer text not null,
    queue text not null,
    alive bigint not null
);

table worker (
    at timestamp with time zone not null default clock_timestamp(),
    worker uuid not null,
    queue text not null,
    name text not null default current_setting('application_name'::text),
    address inet default inet_client_addr(),
    process bigint not null,
    version text not null,
    started_at timestamp with time zone not null,
    ended boolean not null,
    seconds double precision not null,
    handled bigint not null,
    failed bigint not null,
    running bigint not null,
    hands bigint not null,
    p50 double precision,
    p99 double precision
);

sequence audit_id_seq increment 1 minvalue 1 start 1;

sequence id_emails increment 1024 minvalue 1024 start 1024;

alter table archive_emails add constraint archivekey_emails PRIMARY KEY (id);

alter table audit add constraint audit_token UNIQUE (token);

alter table audit add constraint pk_audit PRIMARY KEY (id);

alter table bucket add constraint bucket_filled_at CHECK (isfinite(filled_at));

alter table bucket add constraint bucket_tokens CHECK (((tokens >= ('-2000000000'::numeric)::double precision) AND (tokens <= ('1000000000'::numeric)::double precision)));

alter table bucket add constraint fk_bucket_queue FOREIGN KEY (queue) REFERENCES queue(name) ON DELETE CASCADE;

alter table bucket add constraint pk_bucket PRIMARY KEY (queue);

alter table dead_emails add constraint deadkey_emails PRIMARY KEY (id);

alter table dropped add constraint pk_dropped PRIMARY KEY (queue);

alter table floor add constraint floor_times CHECK (((reached < 'infinity'::timestamp with time zone) AND isfinite(shown)));

alter table floor add constraint pk_floor PRIMARY KEY (queue);

alter table granted add constraint granted_kind CHECK ((kind = ANY (ARRAY['producer'::text, 'consumer'::text, 'operator'::text])));

alter table granted add constraint pk_granted PRIMARY KEY (role, kind, queue);

alter table history add constraint pk_history PRIMARY KEY (minute, queue);

alter table migration add constraint pk_migration PRIMARY KEY (version);

alter table queue add constraint pk_queue PRIMARY KEY (name);

alter table queue add constraint queue_burst CHECK (((burst >= (1)::double precision) AND (burst < 'Infinity'::double precision)));

alter table queue add constraint queue_head_start CHECK (((head_start > '00:00:00'::interval) AND (head_start <= '36500 days'::interval)));

alter table queue add constraint queue_key_burst CHECK (((key_burst >= (1)::double precision) AND (key_burst < 'Infinity'::double precision)));

alter table queue add constraint queue_key_per_second CHECK (((key_per_second > (0)::double precision) AND (key_per_second < 'Infinity'::double precision)));

alter table queue add constraint queue_lanes CHECK (((lanes >= 0) AND (lanes <= 256)));

alter table queue add constraint queue_lease CHECK (((lease > '00:00:00'::interval) AND (lease <= '365 days'::interval)));

alter table queue add constraint queue_max_attempts CHECK ((max_attempts >= 1));

alter table queue add constraint queue_max_batch CHECK (((max_batch >= 1) AND (max_batch <= 1024)));

alter table queue add constraint queue_max_leased CHECK ((max_leased >= 1));

alter table queue add constraint queue_name CHECK ((name ~ '^[a-z][a-z0-9_.-]{0,47}$'::text));

alter table queue add constraint queue_per_key CHECK ((per_key >= 1));

alter table queue add constraint queue_per_second CHECK (((per_second > (0)::double precision) AND (per_second < 'Infinity'::double precision)));

alter table queue add constraint queue_priorities CHECK (((priorities >= 1) AND (priorities <= 10)));

alter table queue_emails add constraint finite CHECK (isfinite(due_at));

alter table queue_emails add constraint key_emails PRIMARY KEY (id);

alter table relay add constraint fk_relay_queue FOREIGN KEY (queue) REFERENCES queue(name) ON DELETE CASCADE;

alter table relay add constraint pk_relay PRIMARY KEY (queue, name);

alter table schedule add constraint fk_schedule_queue FOREIGN KEY (queue) REFERENCES queue(name) ON DELETE CASCADE;

alter table schedule add constraint pk_schedule PRIMARY KEY (name);

alter table schedule add constraint schedule_key CHECK (((key <> ''::text) AND (octet_length(key) <= 1024)));

alter table schedule add constraint schedule_missed CHECK ((missed = ANY (ARRAY['skip'::text, 'once'::text, 'each'::text])));

alter table schedule add constraint schedule_name CHECK ((name ~ '^[a-z][a-z0-9_.-]{0,47}$'::text));

alter table schedule add constraint schedule_priority CHECK (((priority >= 0) AND (priority <= 9)));

alter table schedule add constraint schedule_times CHECK (((next_at > '-infinity'::timestamp with time zone) AND isfinite(owed_at)));

alter table stripe add constraint pk_stripe PRIMARY KEY (one);

alter table stripe add constraint stripe_one CHECK (one);

alter table template add constraint pk_template PRIMARY KEY (name);

alter table template add constraint template_kind CHECK ((kind = ANY (ARRAY['tables'::text, 'view'::text, 'function'::text])));

alter table version add constraint ck_version_oldest CHECK ((oldest <= version));

alter table version add constraint pk_version PRIMARY KEY (version);

alter table waiting add constraint pk_waiting PRIMARY KEY (consumer);

alter table worker add constraint pk_worker PRIMARY KEY (at, worker);

alter table worker add constraint worker_calls CHECK ((((p50 >= (0)::double precision) AND (p50 <= ('1000000000'::numeric)::double precision)) AND ((p99 >= (0)::double precision) AND (p99 <= ('1000000000'::numeric)::double precision))));

alter table worker add constraint worker_numbers CHECK ((((seconds >= (0)::double precision) AND (seconds <= ('1000000000'::numeric)::double precision)) AND ((handled >= 0) AND ((handled)::numeric <= '1000000000000000'::numeric)) AND ((failed >= 0) AND ((failed)::numeric <= '1000000000000000'::numeric)) AND ((running >= 0) AND ((running)::numeric <= '1000000000000000'::numeric)) AND ((hands >= 0) AND ((hands)::numeric <= '1000000000000000'::numeric))));

alter table worker add constraint worker_process CHECK ((process > 0));

alter table worker add constraint worker_started_at CHECK (isfinite(started_at));

alter table worker add constraint worker_version CHECK ((length(version) <= 100));

CREATE INDEX age_emails ON trunkline.archive_emails USING btree (archived_at);

CREATE UNIQUE INDEX archivekey_emails ON trunkline.archive_emails USING btree (id);

CREATE UNIQUE INDEX audit_token ON trunkline.audit USING btree (token);

CREATE UNIQUE INDEX deadkey_emails ON trunkline.dead_emails USING btree (id);

CREATE INDEX due_emails ON trunkline.queue_emails USING btree (due_at, ((id + 0)));

CREATE UNIQUE INDEX key_emails ON trunkline.queue_emails USING btree (id);

CREATE UNIQUE INDEX pk_audit ON trunkline.audit USING btree (id);

CREATE UNIQUE INDEX pk_bucket ON trunkline.bucket USING btree (queue);

CREATE UNIQUE INDEX pk_dropped ON trunkline.dropped USING btree (queue);

CREATE UNIQUE INDEX pk_floor ON trunkline.floor USING btree (queue);

CREATE UNIQUE INDEX pk_granted ON trunkline.granted USING btree (role, kind, queue);

CREATE UNIQUE INDEX pk_history ON trunkline.history USING btree (minute, queue);

CREATE UNIQUE INDEX pk_migration ON trunkline.migration USING btree (version);

CREATE UNIQUE INDEX pk_queue ON trunkline.queue USING btree (name);

CREATE UNIQUE INDEX pk_relay ON trunkline.relay USING btree (queue, name);

CREATE UNIQUE INDEX pk_schedule ON trunkline.schedule USING btree (name);

CREATE UNIQUE INDEX pk_stripe ON trunkline.stripe USING btree (one);

CREATE UNIQUE INDEX pk_template ON trunkline.template USING btree (name);

CREATE UNIQUE INDEX pk_version ON trunkline.version USING btree (version);

CREATE UNIQUE INDEX pk_waiting ON trunkline.waiting USING btree (consumer);

CREATE UNIQUE INDEX pk_worker ON trunkline.worker USING btree (at, worker);

CREATE INDEX schedule_by_next ON trunkline.schedule USING btree (next_at) WHERE (NOT paused);

CREATE INDEX schedule_by_placed ON trunkline.schedule USING btree (placed_at);

CREATE INDEX waiting_by_queue ON trunkline.waiting USING btree (queue);

function ack(queue text, id bigint, attempt integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.settle('ack', queue, array[id], array[attempt]);
end ;

function ack_many(queue text, ids bigint[], attempts integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.settle('ack', queue, ids, attempts);
end ;

function along_lanes(queue text, holder bigint, n integer, lease interval, most integer) returns TABLE(id bigint, attempt integer, key text, enqueued_at timestamp with time zone, due_at timestamp with time zone, payload text, metadata jsonb) language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.check_keyed(queue);
    if (select q.key_per_second is not null from trunkline.queue q where q.name = queue) then
        raise exception 'queue % has a rate for each key, which its workers keep', quote_literal(queue) using errcode = 'feature_not_supported',
            hint = 'Run a worker; or set the rate of the whole queue instead, with trunkline.limit_queue(..., per_second => 100).';
    end if;
    return query execute format($q$
        select b.id + m.k, b.attempt, m.key, b.enqueued_at, b.due_at, m.payload::text, m.metadata
        from trunkline.%I($1, $2, $3, $4, $5) b,
             lateral (select generate_series(0, b.size - 1) as k, unnest(b.payload) as payload, unnest(b.metadata) as metadata, unnest(b.keys) as key) m $q$,
        'do_lanes_' || queue) using trunkline.check_n(n), lease, holder, trunkline.floor(queue), most;
end ;

function alter_queue(queue text, max_attempts integer DEFAULT NULL::integer, lease interval DEFAULT NULL::interval, max_batch integer DEFAULT NULL::integer, head_start interval DEFAULT NULL::interval, per_key integer DEFAULT NULL::integer, lanes integer DEFAULT NULL::integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
declare
    now_is trunkline.queue;
begin
    perform trunkline.lock_queue(queue);
    perform trunkline.check_queue(queue);
    select * into now_is from trunkline.queue q where q.name = queue;
    max_attempts := coalesce(max_attempts, now_is.max_attempts);
    lease := coalesce(lease, now_is.lease);
    max_batch := coalesce(max_batch, now_is.max_batch);
    head_start := coalesce(head_start, now_is.head_start);
    per_key := coalesce(per_key, now_is.per_key);
    lanes := coalesce(lanes, now_is.lanes);
    perform trunkline.check_settings(queue, max_attempts, lease, max_batch, now_is.priorities, head_start, lanes, per_key);
    update trunkline.queue q set max_attempts = max_attempts, lease = lease, max_batch = max_batch, head_start = head_start, per_key = per_key
    where q.name = queue;
    if lanes <> now_is.lanes then
        perform trunkline.more_lanes(queue, lanes);
    end if;
    perform trunkline.install_queue(queue);
end ;

function apply_rights(queue text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    g record;
    main text := format('trunkline.%I', 'queue_' || queue);
    dead text := format('trunkline.%I', 'dead_' || queue);
    archive text := format('trunkline.%I', 'archive_' || queue);
    laned bool := (select q.priorities > 1 from trunkline.queue q where q.name = queue);
    uniqueness bool := (select q.uniqueness from trunkline.queue q where q.name = queue);
    limited bool := to_regclass(format('trunkline.%I', 'limit_' || queue)) is not null;
    keyed bool := (select q.lanes > 0 from trunkline.queue q where q.name = queue);
begin
    for g in
        select distinct a.role, a.kind from trunkline.granted a join pg_roles r on r.rolname = a.role
        where a.queue in (apply_rights.queue, '')
    loop
        if uniqueness then
            execute format('grant select, insert, update (id, until, claimed_at) on trunkline.%I to %I', 'unique_' || queue, g.role);
        end if;
        if g.kind = 'producer' then
            execute format('grant insert (due_at, size, payload, metadata%s), select (id, size) on %s to %I',
                           case when laned then ', lane' when keyed then ', lane, keys' else '' end, main, g.role);
            execute format('grant usage on sequence trunkline.%I to %I', 'id_' || queue, g.role);
        else
            execute format('grant select, insert, update, delete on %s to %I', main, g.role);
            execute format('grant select, insert on %s, %s to %I', dead, archive, g.role);
            if uniqueness then
                execute format('grant delete on trunkline.%I to %I', 'unique_' || queue, g.role);
            end if;
            if limited then
                execute format('grant update on trunkline.%I to %I', 'limit_' || queue, g.role);
            end if;
            if keyed then
                execute format('grant select, update on trunkline.%I to %I', 'lane_' || queue, g.role);
                execute format('grant select, insert, update, delete on trunkline.%I to %I', 'line_' || queue, g.role);
            end if;
        end if;
        if g.kind = 'operator' then
            execute format('grant update, delete on %s, %s to %I', dead, archive, g.role);
            execute format('grant select on trunkline.%I to %I', 'messages_' || queue, g.role);
            execute format('grant usage, select on sequence trunkline.%I to %I', 'id_' || queue, g.role);
        end if;
    end loop;
end ;

function apply_shared_rights() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    g record;
begin
    for g in select distinct a.role, a.kind from trunkline.granted a join pg_roles r on r.rolname = a.role loop
        execute format('grant usage on schema %I to %I', rtrim('trunkline.', '.'), g.role);
        execute format('grant select on trunkline.migration, trunkline.version, trunkline.queue, trunkline.floor, trunkline.stripe to %I', g.role);
        -- A relay keeps its position with the right to enqueue what it read, or to dequeue what it sends.
        execute format('grant select, insert, update (position, holder, held_until, confirmed, refused, held, lag, last_error, failed_at, started_at, seen_at) '
                       'on trunkline.relay to %I', g.role);
        if g.kind <> 'producer' then
            execute format('grant select, update (tokens, filled_at) on trunkline.bucket to %I', g.role);
            execute format('grant update (reached, shown) on trunkline.floor to %I', g.role);
            execute format('grant select, insert, update (alive) on trunkline.waiting to %I', g.role);
            execute format('grant select, insert (worker, queue, process, version, started_at, ended, seconds, handled, failed, running, hands, p50, p99) '
                           'on trunkline.worker to %I', g.role);
        end if;
        if g.kind = 'operator' then
            -- Not its id, time or role: an entry that has the next id would stop the actions of all.
            execute format('grant insert (who, action, queue, what, token, affected) on trunkline.audit to %I', g.role);
        end if;
    end loop;
    -- The payloads of all queues' schedules stand in one table, and what was done with all queues in another.
    for g in select distinct a.role from trunkline.granted a join pg_roles r on r.rolname = a.role where a.kind = 'operator' and a.queue = '' loop
        execute format('grant select, insert, update, delete on trunkline.schedule to %I', g.role);
        execute format('grant select on trunkline.audit to %I', g.role);
        execute format('grant select, insert, delete on trunkline.history to %I', g.role);
    end loop;
end ;

function archive(queue text, id bigint, attempt integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.settle('archive', queue, array[id], array[attempt]);
end ;

function archive_many(queue text, ids bigint[], attempts integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.settle('archive', queue, ids, attempts);
end ;

function base_type(of regtype) returns regtype language plpgsql stable set search_path=pg_catalog, pg_temp as 
declare
    base oid := of;
    below oid;
begin
    loop
        select t.typbasetype into below from pg_type t where t.oid = base;
        if coalesce(below, 0) = 0 then
            return base;
        end if;
        base := below;
    end loop;
end ;

function bury(queue text, id bigint, attempt integer, reason text DEFAULT ''::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.settle('bury', queue, array[id], array[attempt], null, reason);
end ;

function bury_many(queue text, ids bigint[], attempts integer[], reason text DEFAULT ''::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.settle('bury', queue, ids, attempts, null, reason);
end ;

function cancel(queue text, ids bigint[]) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    return query select trunkline.change('cancel', queue, ids);
end ;

function change(verb text, queue text, ids bigint[], due timestamp with time zone DEFAULT NULL::timestamp with time zone) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp jit=off as 
declare
    changed bigint[];
    busy bigint[] := ids;
begin
    perform trunkline.check_queue(queue);
    if ids is null then
        raise exception 'which messages? the ids are null' using errcode = 'null_value_not_allowed',
            hint = 'Pass an array of ids; an empty one names no message.';
    end if;
    for pass in 1..20 loop
        execute format('select array_agg(c.id order by c.id) filter (where c.done), array_agg(c.id) filter (where not c.done) from trunkline.%I($1 %s) c',
                       'do_' || verb || '_' || queue, case verb when 'reschedule' then ', $2' else '' end)
            into changed, busy using busy, due;
        return query select unnest(changed);
        exit when busy is null;
        perform pg_sleep(0.005);
    end loop;
end ;

function charge(queue text, id bigint, attempt integer, delay interval DEFAULT '00:00:00'::interval, error text DEFAULT ''::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.check_delay(delay);
    perform trunkline.settle('charge', queue, array[id], array[attempt], delay, error);
    perform pg_notify('trunkline.' || queue, '');
end ;

function charge_many(queue text, ids bigint[], attempts integer[], delay interval DEFAULT '00:00:00'::interval, error text DEFAULT ''::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.check_delay(delay);
    perform trunkline.settle('charge', queue, ids, attempts, delay, error);
    perform pg_notify('trunkline.' || queue, '');
end ;

function check_delay(delay interval) returns interval language plpgsql immutable set search_path=pg_catalog, pg_temp as 
begin
    if delay is null or delay < '0' or delay > '365 days' then
        raise exception 'a delay of % is out of bounds', coalesce(delay::text, 'null')
            using errcode = 'invalid_parameter_value', hint = 'A delay is at least zero and at most 365 days.';
    end if;
    return delay;
end ;

function check_ids(ids bigint[], verb text) returns bigint[] language plpgsql immutable set search_path=pg_catalog, pg_temp as 
begin
    if ids is null then
        raise exception 'which dead letters? the ids are null' using errcode = 'null_value_not_allowed',
            hint = format('Pass an array of ids, or use trunkline.%s_all(queue).', verb);
    end if;
    return ids;
end ;

function check_keyed(queue text) returns void language plpgsql stable set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.check_queue(queue);
    if (select q.lanes = 0 from trunkline.queue q where q.name = queue) then
        raise exception 'queue % has no lanes: its messages have no keys', quote_literal(queue)
            using errcode = 'feature_not_supported', hint = 'Lease with trunkline.lease; or create one with trunkline.create_queue(..., lanes => 64).';
    end if;
end ;

function check_keys(queue text, keys text[], messages integer) returns void language plpgsql stable set search_path=pg_catalog, pg_temp as 
declare
    keyed bool := (select q.lanes > 0 from trunkline.queue q where q.name = queue);
begin
    if keys is null and keyed then
        raise exception 'queue % needs a key for each message', quote_literal(queue)
            using errcode = 'null_value_not_allowed', hint = 'Pass one: trunkline.enqueue(..., key => ''customer 17'').';
    elsif keys is not null and not keyed then
        raise exception 'queue % has no keys', quote_literal(queue)
            using errcode = 'invalid_parameter_value', hint = 'Create one with trunkline.create_queue(..., lanes => 64), or pass no key.';
    elsif cardinality(keys) <> messages then
        raise exception '% payloads have keys for %', messages, cardinality(keys)
            using errcode = 'invalid_parameter_value', hint = 'Pass a key for each payload.';
    elsif exists (select from unnest(keys) k where k is null or k = '' or octet_length(k) > 1024) then
        raise exception 'a key of queue % is empty, null or too long', quote_literal(queue)
            using errcode = 'invalid_parameter_value', hint = 'A key has 1 to 1,024 bytes.';
    end if;
end ;

function check_lease(lease interval) returns interval language plpgsql immutable set search_path=pg_catalog, pg_temp as 
begin
    if lease is null or lease <= '0' or lease > '365 days' then
        raise exception 'a lease of % is out of bounds', coalesce(lease::text, 'null')
            using errcode = 'invalid_parameter_value', hint = 'A lease is more than zero and at most 365 days.';
    end if;
    return lease;
end ;

function check_metadata(metadata jsonb) returns jsonb language plpgsql immutable set search_path=pg_catalog, pg_temp as 
declare
    bytes bigint;
begin
    if metadata is null then
        return null;
    elsif jsonb_typeof(metadata) <> 'object' then
        raise exception 'metadata is an object, not %', left(metadata::text, 100) using errcode = 'invalid_parameter_value',
            hint = 'Pass names and texts, as in {"tenant": "acme"}, or null for none.';
    end if;
    bytes := octet_length(metadata::text) - greatest(2 * (select count(*) from jsonb_object_keys(metadata)) - 1, 0);
    if bytes > 16384 then
        raise exception 'metadata of % bytes is too large', bytes using errcode = 'program_limit_exceeded',
            hint = 'The metadata of a message has at most 16,384 bytes. Put what is larger into the payload.';
    end if;
    return metadata;
end ;

function check_n(n integer) returns integer language plpgsql immutable set search_path=pg_catalog, pg_temp as 
begin
    if n is null or n < 0 then
        raise exception 'n is %, but a number of messages is at least 0', coalesce(n::text, 'null')
            using errcode = 'invalid_parameter_value', hint = 'Ask for as many messages as you can handle at a time.';
    end if;
    return n;
end ;

function check_priority(queue text, priority integer) returns text language plpgsql stable set search_path=pg_catalog, pg_temp as 
declare
    priorities int;
begin
    select q.priorities into priorities from trunkline.queue q where q.name = queue;
    if (priority >= 0 and priority < priorities) is not true then
        raise exception 'queue % has no priority %', quote_literal(queue), coalesce(priority::text, 'null')
            using errcode = 'invalid_parameter_value',
                  hint = case priorities when 1 then 'It has none: create one with trunkline.create_queue(..., priorities => 4).'
                                         else format('It has those from 0 to %s; the highest goes first.', priorities - 1) end;
    end if;
    return case when priorities > 1 then format(', null, %s', priority) else '' end;
end ;

function check_queue(queue text) returns void language plpgsql stable set search_path=pg_catalog, pg_temp as 
begin
    if queue is null or not exists (select from trunkline.queue q where q.name = queue) then
        raise exception 'there is no queue %', coalesce(quote_literal(queue), 'NULL')
            using errcode = 'undefined_table',
                  hint = 'Create it with: select trunkline.create_queue(''name'', ''jsonb'')';
    end if;
end ;

function check_role(role regrole) returns text language plpgsql stable set search_path=pg_catalog, pg_temp as 
declare
    name text := (select r.rolname from pg_roles r where r.oid = role);
begin
    if name is null then
        raise exception 'there is no role %', coalesce(role::text, 'NULL') using errcode = 'undefined_object', hint = 'Pass the name of a role.';
    elsif exists (select from pg_class c where c.oid = 'trunkline.queue'::regclass and c.relowner = role) then
        raise exception '% owns the schema', quote_ident(name) using errcode = 'invalid_parameter_value',
            hint = 'The owner has all rights already. Grant producers, consumers and operators theirs, and let them log in as themselves.';
    end if;
    return name;
end ;

function check_schedule(name text, expression text, zone text, missed text) returns void language plpgsql stable set search_path=pg_catalog, pg_temp standard_conforming_strings=on as 
begin
    if name is null or name !~ '^[a-z][a-z0-9_.-]{0,47}$' then
        raise exception 'a schedule cannot be named %', coalesce(quote_literal(name), 'NULL')
            using errcode = 'invalid_name',
                  hint = 'A name has 1 to 48 characters: a lower-case letter, then a-z, 0-9, "_", "." or "-".';
    elsif expression is null or expression !~*
        '^\s*(@(hourly|daily|midnight|weekly|monthly|yearly|annually)|every(\s+[0-9]{1,9})?\s+(second|minute|hour|day)s?|(\S+\s+){4,5}\S+)\s*$' then
        raise exception '% is no expression of a schedule', coalesce(quote_literal(expression), 'NULL')
            using errcode = 'invalid_parameter_value',
                  hint = 'Pass five fields of cron (0 3 * * *), six with seconds first, @hourly and the like, or: every 90 seconds.';
    elsif missed is null or missed not in ('skip', 'once', 'each') then
        raise exception 'ticks that were missed cannot be made %', coalesce(quote_literal(missed), 'NULL')
            using errcode = 'invalid_parameter_value', hint = 'Pass skip, once or each.';
    end if;
    perform now() at time zone zone; -- errs where there is no such zone
    if zone is null then
        raise exception 'schedule % has no time zone', quote_literal(name) using errcode = 'null_value_not_allowed',
            hint = 'Pass a name as in Europe/Berlin, or UTC.';
    end if;
end ;

function check_settings(queue text, max_attempts integer, lease interval, max_batch integer, priorities integer, head_start interval, lanes integer, per_key integer) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp as 
begin
    if (max_attempts >= 1 and lease > '0' and lease <= '365 days' and max_batch between 1 and 1024
        and priorities between 1 and 10 and head_start > '0' and head_start <= '36500 days'
        and lanes between 0 and 256 and per_key >= 1) is not true then
        raise exception 'the settings of queue % are out of bounds', quote_literal(queue)
            using errcode = 'invalid_parameter_value',
                  hint = 'max_attempts is at least 1, lease more than 0 and at most 365 days, max_batch 1 to 1024, priorities 1 to 10, '
                         'head_start more than 0 and at most 36500 days, lanes 0 to 256, per_key at least 1.';
    elsif lanes > 0 and priorities > 1 then
        raise exception 'queue % cannot have keys and priorities', quote_literal(queue)
            using errcode = 'invalid_parameter_value', hint = 'Pass lanes or priorities; or make a queue for each.';
    end if;
end ;

function check_unique(queue text, messages integer, metadata jsonb[], keys text[], unique_for interval) returns void language plpgsql stable set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
declare
    wrong text := (select k from unnest(keys) k where k = '' or octet_length(k) > 1024 limit 1);
begin
    perform trunkline.check_metadata(m) from unnest(metadata) m;
    if not exists (select from trunkline.queue q where q.name = queue and q.uniqueness) then
        raise exception 'queue % keeps no unique keys', quote_literal(queue) using errcode = 'invalid_parameter_value',
            hint = 'Create one that does: trunkline.create_queue(..., uniqueness => true).';
    elsif messages is null then
        raise exception 'the payloads of queue % are null', quote_literal(queue) using errcode = 'null_value_not_allowed',
            hint = 'Pass an array; an empty one enqueues nothing.';
    elsif cardinality(keys) is distinct from messages or cardinality(metadata) <> messages then
        raise exception '% payloads have unique keys for %, and metadata for %', messages, coalesce(cardinality(keys), 0), cardinality(metadata)
            using errcode = 'invalid_parameter_value', hint = 'Pass one for each payload, null for those without.';
    elsif wrong is not null then
        raise exception 'a unique key of % bytes is out of bounds', octet_length(wrong) using errcode = 'invalid_parameter_value',
            hint = 'A key has 1 to 1,024 bytes. Of what is longer, take a hash.';
    elsif unique_for <= '0' or unique_for > '36500 days' then
        raise exception 'a unique key cannot be kept for %', unique_for using errcode = 'invalid_parameter_value',
            hint = 'It is kept for more than zero and at most 36500 days; null keeps it until the message has ended.';
    end if;
end ;

function check_wait(wait interval) returns double precision language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    if wait is null or wait < '0' or wait > '1 minute' then
        raise exception 'a wait of % is out of bounds', coalesce(wait::text, 'null')
            using errcode = 'invalid_parameter_value', hint = 'A wait is at least zero, which is none, and at most 1 minute. For longer, call again.';
    elsif current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        raise exception 'a transaction that is % sees no message that comes while it waits', current_setting('transaction_isolation')
            using errcode = 'invalid_transaction_state',
                  hint = 'Wait in a transaction that is read committed, or leave wait out and look again in another transaction.';
    elsif pg_current_xact_id_if_assigned() is not null then
        raise exception 'a transaction that has written something would keep it from everybody while it waits'
            using errcode = 'invalid_transaction_state', hint = 'Commit before you wait, or leave wait out.';
    end if;
    return extract(epoch from wait);
end ;

function claim_schedules(since timestamp with time zone, n integer) returns TABLE(tid tid, name text, queue text, expression text, zone text, missed text, placed boolean, next_at timestamp with time zone, clock timestamp with time zone) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off as 
#variable_conflict use_column
begin
    return query
        select s.ctid, s.name, s.queue, s.expression, s.zone, s.missed, s.placed, coalesce(s.owed_at, s.next_at), clock_timestamp()
        from trunkline.schedule s
        where not s.paused and s.next_at >= since and s.next_at <= clock_timestamp() order by s.next_at limit n for update skip locked;
end ;

function clock() returns timestamp with time zone language sql volatile as RETURN CASE WHEN (pg_current_xact_id() IS NOT NULL) THEN clock_timestamp() ELSE NULL::timestamp with time zone END;

function create_queue(queue text, payload regtype DEFAULT 'bytea'::regtype, max_attempts integer DEFAULT 10, lease interval DEFAULT '00:00:30'::interval, max_batch integer DEFAULT 1024, priorities integer DEFAULT 1, head_start interval DEFAULT '00:01:00'::interval, uniqueness boolean DEFAULT false, lanes integer DEFAULT 0, per_key integer DEFAULT 1) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp standard_conforming_strings=on client_min_messages=warning as 
#variable_conflict use_variable
declare
    element text := format_type(payload, -1);
    plain bool := payload in ('bytea'::regtype, 'uuid'::regtype);
    tables text;
    old trunkline.queue;
    differences text[];
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
    perform trunkline.check_settings(queue, max_attempts, lease, max_batch, priorities, head_start, lanes, per_key);
    if uniqueness and lanes > 0 then
        raise exception 'queue % cannot have keys and unique keys', quote_literal(queue)
            using errcode = 'invalid_parameter_value', hint = 'Pass lanes or uniqueness; or make a queue for each.';
    end if;
    perform trunkline.lock_queue(queue);
    insert into trunkline.queue (name, max_attempts, lease, max_batch, priorities, head_start, uniqueness, lanes, per_key)
    values (queue, max_attempts, lease, max_batch, priorities, head_start, coalesce(uniqueness, false), lanes, per_key)
    on conflict on constraint pk_queue do nothing;
    if not found then
        select * into old from trunkline.queue q where q.name = queue;
        select array_agg(format('%s is %s, not %s', d.setting, d.has, d.asked)) into differences
        from (values ('payload', trunkline.payload_type(queue)::text, payload::text, trunkline.payload_type(queue) = payload or exists (
                          select from pg_type t where t.oid = trunkline.payload_type(queue) and t.typbasetype = payload
                          and t.typname = 'payload_' || queue)),
                     ('max_attempts', old.max_attempts::text, max_attempts::text, old.max_attempts = max_attempts),
                     ('lease', old.lease::text, lease::text, old.lease = lease),
                     ('max_batch', old.max_batch::text, max_batch::text, old.max_batch = max_batch),
                     ('priorities', old.priorities::text, priorities::text, old.priorities = priorities),
                     ('head_start', old.head_start::text, head_start::text, old.head_start = head_start),
                     ('uniqueness', old.uniqueness::text, coalesce(uniqueness, false)::text, old.uniqueness = coalesce(uniqueness, false)),
                     ('lanes', old.lanes::text, lanes::text, old.lanes = lanes),
                     ('per_key', old.per_key::text, per_key::text, old.per_key = per_key)) d(setting, has, asked, is_same)
        where not d.is_same;
        if differences is null then
            return;
        end if;
        raise exception 'queue % exists already, with other settings than were asked for: %', quote_literal(queue), array_to_string(differences, '; ')
            using errcode = 'duplicate_object',
                  hint = 'Change settings with trunkline.alter_queue; another payload type, other priorities or uniqueness need another queue.';
    end if;
    -- Postgres has no arrays of arrays, but it has arrays of domains over arrays.
    if exists (select from pg_type t where t.oid = payload and t.typelem <> 0 and t.typsubscript = 'array_subscript_handler'::regproc) then
        element := format('trunkline.%I', 'payload_' || queue);
        execute format('create domain %s as %s', element, format_type(payload, -1));
    end if;

    insert into trunkline.floor (queue) values (queue) on conflict do nothing;
    select t.text into strict tables from trunkline.template t where t.kind = 'tables';
    execute trunkline.fill(replace(tables, '{element}', element), queue);
    if priorities > 1 then
        execute format('alter table trunkline.%I add column lane smallint not null default 0 constraint lane check (lane between 0 and %s)',
                       'queue_' || queue, priorities - 1);
        execute format('drop index trunkline.%I', 'due_' || queue);
        execute format('create index %I on trunkline.%I (lane, due_at, (id + 0))', 'due_' || queue, 'queue_' || queue);
    end if;
    if lanes > 0 then
        -- line: empty, or the key that has one of its own. holder: a number that nobody else has. place: due_at, but for leases and retries.
        execute format('alter table trunkline.%I add column lane smallint not null constraint lane check (lane between 0 and %s), '
                       'add column keys text[] not null, add column line text not null default '''', add column place timestamptz not null',
                       'queue_' || queue, lanes - 1);
        execute format('create index %I on trunkline.%I (lane, line, place, (id + 0))', 'place_' || queue, 'queue_' || queue);
        execute format('create trigger keep_place before insert on trunkline.%I for each row execute function trunkline.keep_place(0, %s)',
                       'queue_' || queue, lanes);
        execute format('create table trunkline.%I (lane smallint constraint %I primary key, holder bigint, held_until timestamptz not null default ''-infinity'', '
                       'wanted_until timestamptz not null default ''-infinity'', served_at timestamptz not null default ''-infinity'', '
                       'floor timestamptz not null default ''-infinity'', starts_until timestamptz not null default ''-infinity'', '
                       'empty_at timestamptz not null default ''-infinity'') with (fillfactor = 10)', 'lane_' || queue, 'lanekey_' || queue);
        -- Beside each lane a row that each lease and cut of its rows locks; below zero, so that nothing that changes lanes meets it.
        execute format('insert into trunkline.%I (lane) select generate_series(%s, %s)', 'lane_' || queue, -lanes, lanes - 1);
        execute format('create table trunkline.%I (lane smallint, key text, until timestamptz not null, constraint %I primary key (lane, key)) '
                       'with (fillfactor = 50)', 'line_' || queue, 'linekey_' || queue);
    end if;
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
    if uniqueness then
        -- Within these bounds the time for which a key is kept can be reckoned from a clock that was ahead: see do_right_.
        execute format('create table trunkline.%I (key text collate "C" constraint %I primary key, id bigint not null, until timestamptz, claimed_at timestamptz,
                        constraint kept check (isfinite(until) and until >= ''0001-01-01 00:00:00+00'' and claimed_at < ''6000-01-01 00:00:00+00''))
                        with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05)',
                       'unique_' || queue, 'uniquekey_' || queue);
        execute format('create index %I on trunkline.%I (id) where until is null', 'uniqueid_' || queue, 'unique_' || queue);
    end if;
    execute format('create trigger keep_letter before insert or update of id on trunkline.%I for each row execute function trunkline.keep_letter()', 'dead_' || queue);
    execute format('create trigger keep_letter before insert on trunkline.%I for each row execute function trunkline.keep_letter()', 'archive_' || queue);
    perform trunkline.install_queue(queue);
    if uniqueness then
        execute format('create trigger free_keys after delete on trunkline.%I referencing old table as gone
                        for each statement execute function trunkline.%I()', 'queue_' || queue, 'do_free_' || queue);
        execute format('create trigger free_all_keys after truncate on trunkline.%I
                        for each statement execute function trunkline.%I()', 'queue_' || queue, 'do_free_' || queue);
    end if;
end ;

function dead_letters(queue text, after bigint DEFAULT 0, n integer DEFAULT 100) returns TABLE(id bigint, enqueued_at timestamp with time zone, dead_at timestamp with time zone, attempt integer, error text, payload text, metadata jsonb, key text) language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.check_queue(queue);
    if after is null then
        raise exception 'a page begins after an id, not after null'
            using errcode = 'null_value_not_allowed', hint = 'Pass 0 for the first page, then the last id of the page before.';
    end if;
    return query execute format(
        'select d.id, d.enqueued_at, d.dead_at, d.attempt, d.error, d.payload::text, d.metadata, %s
         from trunkline.%I($1, $2) d',
        case when (select q.lanes > 0 from trunkline.queue q where q.name = queue) then '((d.own ->> ''keys'')::text[])[1]' else 'null::text' end,
        'do_dead_' || queue) using after, trunkline.check_n(n);
end ;

function discard(queue text, ids bigint[]) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('select count(*) from trunkline.%I($1, null)', 'do_discard_' || queue)
        into count using trunkline.check_ids(ids, 'discard');
    return count;
end ;

function discard_all(queue text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('delete from trunkline.%I', 'dead_' || queue);
    get diagnostics count = row_count;
    return count;
end ;

function do_ack_emails(ids bigint[], sizes integer[], attempts integer[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    if false then
        -- What comes after it in the transaction may need the lanes, and whoever gives the queue more of them locks these first.
        perform from trunkline."lane_emails" where false;
    end if;
    if cardinality(ids) = 1 then
        -- What is usual, at half the cost: a row, whole.
        return query
            delete from trunkline."queue_emails" q
            where q.id = ids[1] and q.size = sizes[1] and q.attempt = attempts[1] and q.error is null and q.due_at > clock_timestamp()
            returning q.id, q.size, q.attempt;
        if found then
            return;
        end if;
    end if;
    for pass in 1..2 loop
        with held as (
            delete from trunkline."queue_emails" q using unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.size, d.attempt as under)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 2 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- What is missing is lost, or shares a row with messages that were not named.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_emails"(ids, sizes, attempts, true);
    end loop;
end ;

function do_allowed_emails(n integer, locks boolean) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz;
    seen record;
begin
    if locks and not trunkline."do_bucket_emails"() then
        return 0;
    end if;
    if null::float8 is not null then
        clock := clock_timestamp();
        select least(null::float8, greatest(b.tokens, 0) + null::float8 * extract(epoch from clock - greatest(least(b.filled_at, clock), 'epoch'))) as tokens, b.filled_at > clock as ahead into seen from trunkline.bucket b where b.queue = 'emails';
        if locks and seen.ahead then
            update trunkline.bucket b set tokens = seen.tokens, filled_at = clock where b.queue = 'emails';
        end if;
        n := least(n, floor(seen.tokens)::int);
    end if;
    if null::int is not null and n > 0 then
        n := least(n, null::int - trunkline."do_leased_emails"());
    end if;
    return greatest(n, 0);
end ;

function do_allowedin_emails() returns double precision language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp(); -- as in do_leased_
    room float8;
    token float8;
begin
    if null::int is not null and trunkline."do_leased_emails"() >= null::int then
        room := (select extract(epoch from min(q.due_at) - clock) from trunkline."queue_emails" q
                 where q.attempt > 0 and q.error is null and q.due_at > clock);
    end if;
    if null::float8 is not null then
        token := (select (1 - least(null::float8, greatest(b.tokens, 0) + null::float8 * extract(epoch from clock - greatest(least(b.filled_at, clock), 'epoch')))) / null::float8 from trunkline.bucket b where b.queue = 'emails');
    end if;
    return greatest(room, case when token > 0 then token end);
end ;

function do_along_emails(n integer, lane integer, floor timestamp with time zone, way integer, lined_n integer, OUT tids tid[], OUT got integer, OUT ran_out boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz;
    at record;
    known record;
    lined text[];
    wanted int := n;
    apart int := way;
    rows int;
    due timestamptz := floor;
    next_id bigint := 0;
begin
    tids := '{}';
    got := 0;
    ran_out := false;
    perform from trunkline."lane_emails" h where h.lane = -1 - lane for update skip locked;
    if not found then
        return;
    end if;
    lined := array(select l.key from trunkline."line_emails" l where l.lane = lane);
    if lined <> '{}' then
        wanted := n - n / 4;
    end if;
    rows := least(wanted, 8);
    while got < wanted loop
        at := trunkline."do_gather_emails"(wanted - got, rows, true, apart, due, next_id, lane, '', lined, 'infinity');
        exit when at.got = 0;
        tids := tids || at.tids;
        got := got + at.got;
        ran_out := at.ran_out;
        if ran_out then
            return;
        end if;
        apart := greatest(way, 2);
        select q.place, q.id + 1 into due, next_id from trunkline."queue_emails" q where q.ctid = tids[cardinality(tids)];
        exit when not at.more;
        -- Behind a row that has to be cut or moved, no more rows are locked than were of use: else each of these would cost a look at all of them.
        rows := least(wanted - got, case when cardinality(at.tids) < rows then greatest(2 * cardinality(at.tids), 8) else 2 * rows end);
    end loop;
    if exists (select from trunkline."line_emails" l where l.lane = lane and l.key <> all (lined)
               and exists (select from trunkline."queue_emails" q where q.ctid = any (tids) and l.key = any (q.keys))) then
        -- Meanwhile a message of it failed, and is due again before these.
        tids := '{}';
        got := 0;
        return;
    elsif lined = '{}' then
        return;
    end if;
    clock := clock_timestamp();
    -- Rows of one statement have one place, so what stands at that of the first row that was not seen may come behind it.
    due := coalesce((
        select q.place - interval '1 microsecond' from trunkline."queue_emails" q
        where q.lane = lane and q.line = '' and (q.place, q.id + 0) >= (due, next_id)
          and q.place <= clock and q.due_at <= clock
        order by q.place, q.id + 0 limit 1), clock);
    n := least(n, got + lined_n);
    for known in
        select l.key, l.until, greatest((n - got) / cardinality(lined), 1) as share from trunkline."line_emails" l
        where l.lane = lane and l.until <= clock order by random()
    loop
        exit when got >= n;
        known.share := least(known.share, n - got);
        at := trunkline."do_gather_emails"(known.share, known.share, true, apart, '-infinity', 0, lane, known.key, '{}', due);
        if at.got > 0 then
            tids := tids || at.tids;
            got := got + at.got;
            ran_out := at.ran_out;
            exit when ran_out;
            apart := greatest(way, 2);
        else
            -- Where its line is empty, the key goes along with the others again.
            delete from trunkline."line_emails" l
            where l.lane = lane and l.key = known.key and l.until = known.until
              and not exists (select from trunkline."queue_emails" q where q.lane = lane and q.line = known.key);
        end if;
    end loop;
end ;

function do_archive_emails(ids bigint[], sizes integer[], attempts integer[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..2 loop
        with held as (
            delete from trunkline."queue_emails" q using unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.enqueued_at, q.attempt - q.released as charged, q.size, q.payload, q.metadata, case when trunkline."do_own_emails"() is not null then trunkline.own(trunkline."do_own_emails"(), q.*) end as own, d.attempt as under
        ), kept as (
            insert into trunkline."archive_emails" (id, enqueued_at, attempt, payload, metadata, own)
            select h.id + m.k, h.enqueued_at, h.charged, m.payload, m.metadata, h.own
            from held h, lateral (select generate_series(0, h.size - 1) as k, unnest(h.payload) as payload, unnest(h.metadata) as metadata) m where m.k is not null)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 2 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- What is missing is lost, or shares a row with messages that were not named.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_emails"(ids, sizes, attempts, true);
    end loop;
end ;

function do_archived_emails(after bigint, n bigint) returns SETOF archive_emails language plpgsql stable set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
begin
    return query select a.* from trunkline."archive_emails" a where a.id > after order by a.id limit n;
end ;

function do_back_emails(id bigint, enqueued_at timestamp with time zone, attempt integer, released integer, error text, size integer, payload jsonb[], metadata jsonb[], own jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan DateStyle=ISO IntervalStyle=postgres TimeZone=UTC lc_monetary=C as 
#variable_conflict use_variable
declare
    named text;
    restored text;
    all_keys text[];
begin
    if false then
        -- It may come from another server, or from before there were more lanes.
        own := own || '{"lane": "-1"}';
        all_keys := (own ->> 'keys')::text[];
        if size > 1 and exists (
            select from unnest(all_keys) k(key) where trunkline.lane_of(k.key, 0) <> trunkline.lane_of(all_keys[1], 0)) then
            for k in 1..size loop
                perform trunkline."do_back_emails"(id + k - 1, enqueued_at, attempt, released, error, 1, payload[k:k], metadata[k:k],
                                             own || jsonb_build_object('keys', all_keys[k:k]::text));
            end loop;
            return;
        end if;
    end if;
    if own is not null then
        select string_agg(quote_ident(a.attname), ', ' order by a.attnum),
               string_agg(format('($9 ->> %L)::%s', a.attname, format_type(a.atttypid, -1)), ', ' order by a.attnum)
        into named, restored from pg_attribute a
        where a.attrelid = 'trunkline."queue_emails"'::regclass and a.attnum > 0 and not a.attisdropped
          and a.attgenerated = '' and a.attidentity = '' and own ? a.attname::text
          and a.attname <> all (array['id', 'enqueued_at', 'due_at', 'attempt', 'released', 'size', 'error', 'payload', 'metadata']);
    end if;
    if named is null then
        insert into trunkline."queue_emails" (id, enqueued_at, attempt, released, error, size, payload, metadata)
        values (id, enqueued_at, attempt, released, error, size, payload, metadata);
    else
        execute format(
            'insert into trunkline.%I (id, enqueued_at, attempt, released, error, size, payload, metadata, %s)
             values ($1, $2, $3, $4, $5, $6, $7, $8, %s)', 'queue_' || 'emails', named, restored)
            using id, enqueued_at, attempt, released, error, size, payload, metadata, own;
    end if;
end ;

function do_batch_emails(payloads jsonb[], delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], due timestamp with time zone DEFAULT NULL::timestamp with time zone) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
begin
    if false then
        perform trunkline.check_keys('emails', null, cardinality(payloads));
    end if;
    if delay is null or delay < '0' or delay > '36500 days' then
        raise exception 'a delay of % is out of bounds', coalesce(delay::text, 'null') using errcode = 'invalid_parameter_value',
            hint = 'A delay is at least zero and at most 36500 days.';
    elsif payloads is null then
        raise exception 'the payloads of queue % are null', 'emails' using errcode = 'null_value_not_allowed',
            hint = 'Pass an array; an empty one enqueues nothing.';
    elsif array_ndims(payloads) > 1 then
        raise exception 'the payloads are an array of % dimensions', array_ndims(payloads)
            using errcode = 'array_subscript_error', hint = 'Pass one dimension.';
    end if;
    payloads := payloads[:];
    if metadata is not null then
        if cardinality(metadata) <> cardinality(payloads) then
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
            select m.*, (sum(m.bytes) over (order by m.nr) - m.bytes)::bigint / 65536 as page from message m
        ), batch as (
            insert into trunkline."queue_emails" (due_at, size, payload, metadata)
            select greatest(trunkline.clock(), due) + delay, count(*), array_agg(p.payload order by p.nr),
                   case when count(p.metadata) > 0 then array_agg(p.metadata order by p.nr) filter (where metadata is not null) end
            from placed p group by p.page, p.bytes > 65536, (p.nr - 1) / 1024 order by min(p.nr)
            returning id, size
        )
        select b.id + k from batch b, generate_series(0, b.size - 1) k order by b.id, k;
    if cardinality(payloads) > 0 then
        perform pg_notify('trunkline.emails', '');
    end if;
end ;

function do_behind_emails(ids bigint[]) returns bigint[] language plpgsql stable set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
begin
    return (
        select array_agg(m.id order by m.id)
        from unnest(ids) m(id), lateral (
            select r.lane, r.place, r.id, r.size, r.keys[(m.id - r.id)::int + 1] as key
            from trunkline."queue_emails" r where r.id <= m.id and r.id >= m.id / 1024 * 1024 order by r.id desc limit 1) q
        where m.id - q.id < q.size and exists (
            -- A key of which a message failed has a line of its own.
            select from trunkline."queue_emails" r
            where r.lane = q.lane and r.line = q.key and (r.place, r.id + 0) < (q.place, m.id) and r.error is not null));
end ;

function do_bucket_emails() returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp lock_timeout=50ms as 
begin
    lock table trunkline."limit_emails" in exclusive mode;
    return true;
exception when lock_not_available then
    return false;
end ;

function do_bury_emails(ids bigint[], sizes integer[], attempts integer[], reasons text[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..2 loop
        with held as (
            delete from trunkline."queue_emails" q using unnest(ids, sizes, attempts, reasons) with ordinality d(id, size, attempt, reason, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.enqueued_at, q.attempt, q.released, q.size, q.payload, q.metadata, case when trunkline."do_own_emails"() is not null then trunkline.own(trunkline."do_own_emails"(), q.*) end as own, d.reason, d.attempt as under
        ), dead as (
            insert into trunkline."dead_emails" (id, enqueued_at, attempt, released, error, payload, metadata, own)
            select h.id + m.k, h.enqueued_at, h.attempt - h.released, h.released, coalesce(h.reason, ''), m.payload, m.metadata, h.own
            from held h, lateral (select generate_series(0, h.size - 1) as k, unnest(h.payload) as payload, unnest(h.metadata) as metadata) m where m.k is not null)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 2 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- What is missing is lost, or shares a row with messages that were not named.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        reasons := array(select reasons[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_emails"(ids, sizes, attempts, true);
    end loop;
end ;

function do_cancel_emails(ids bigint[]) returns TABLE(id bigint, done boolean) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    picked record;
begin
    picked := trunkline."do_pick_emails"(ids, true);
    return query
        with gone as (
            delete from trunkline."queue_emails" q using unnest(picked.first, picked.sizes) d(id, size)
            where q.id >= d.id and q.id < d.id + d.size
            returning q.id, q.size)
        select g.id + k, true from gone g, generate_series(0, g.size - 1) k;
    return query select b, false from unnest(picked.busy) b;
end ;

function do_carve_emails(ids bigint[], sizes integer[], attempts integer[], leased boolean) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    r trunkline."queue_emails"%rowtype;
    wide record;
    moved bool;
    waited float8 := 0;
    pause float8 := 0.0005;
begin
    loop
        moved := false;
        for wide in
            with edge as (
                select distinct e.at, d.attempt
                from unnest(ids, sizes, attempts) d(id, size, attempt), lateral (values (d.id), (d.id + d.size)) e(at)
                where e.at % 1024 <> 0
            ), mark as (
                select e.at, e.attempt, null::bigint[] as begun from edge e
                union all
                select q.id, null, array[q.id, q.size, q.attempt]
                from (select distinct e.at / 1024 * 1024 as id from edge e) block,
                     lateral (select q.id, q.size, q.attempt from trunkline."queue_emails" q
                              where q.id >= block.id and q.id < block.id + 1024 and q.size > 1
                                and (not leased or q.error is null and q.due_at > clock_timestamp())) q
            ), met as (
                select m.at, m.attempt, max(m.begun) over (order by m.at, m.begun is not null rows unbounded preceding) as begun
                from mark m
            )
            select m.begun[1] as id, m.begun[2] as size, m.begun[3] as attempt, array_agg((m.at - m.begun[1])::int) as cuts
            from met m
            where m.attempt = m.begun[3] and m.at < m.begun[1] + m.begun[2]
            group by m.begun order by m.begun
        loop
            if leased and waited >= 1 then
                select * into r from trunkline."queue_emails" q where q.id = wide.id for update;
            else
                select * into r from trunkline."queue_emails" q where q.id = wide.id for update skip locked;
                continue when not found and not leased;
            end if;
            if not found or r.size <> wide.size then
                -- Somebody has it, or split it meanwhile: look again, in a fresh snapshot. Before the next row, because whoever
                -- carves locks rows in the order of their ids.
                if not found and exists (select from trunkline."queue_emails" q where q.id = wide.id and q.size = wide.size) then
                    perform pg_sleep(pause);
                    waited := waited + pause;
                    pause := least(2 * pause, 0.02);
                end if;
                moved := true;
                exit;
            elsif r.attempt = wide.attempt and (not leased or r.error is null and r.due_at > clock_timestamp()) then
                perform trunkline."do_split_emails"(r.id, wide.cuts);
            end if;
        end loop;
        exit when not moved;
    end loop;
end ;

function do_charge_emails(ids bigint[], sizes integer[], attempts integer[], delays interval[], errors text[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..2 loop
        with failed as materialized (
            select d.nr, q.ctid as tid, q.attempt as under, q.attempt + 1 as attempt,
                   q.attempt + 1 - q.released >= 10 as spent, d.delay, d.error
            from unnest(ids, sizes, attempts, delays, errors) with ordinality d(id, size, attempt, delay, error, nr)
            join trunkline."queue_emails" q
              on q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size and q.attempt = d.attempt
             and (q.attempt = 0 or q.error is not null or q.due_at <= clock_timestamp())
            for update of q skip locked
        ), again as (
            update trunkline."queue_emails" q
            set due_at = trunkline.clock() + f.delay, attempt = f.attempt, error = coalesce(f.error, '')
            from failed f where q.ctid = f.tid and not f.spent
            returning f.nr, q.id, q.size, f.under
        ), gone as (
            delete from trunkline."queue_emails" q using failed f where q.ctid = f.tid and f.spent
            returning f.nr, q.id, q.enqueued_at, q.size, q.payload, q.metadata, case when trunkline."do_own_emails"() is not null then trunkline.own(trunkline."do_own_emails"(), q.*) end as own, f.under, f.attempt - q.released as charged, q.released, f.error as reason
        ), dead as (
            insert into trunkline."dead_emails" (id, enqueued_at, attempt, released, error, payload, metadata, own)
            select g.id + m.k, g.enqueued_at, g.charged, g.released, coalesce(g.reason, ''), m.payload, m.metadata, g.own
            from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m where m.k is not null
        ), held as (
            select a.nr, a.id, a.size, a.under from again a union all select g.nr, g.id, g.size, g.under from gone g)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        if false then
            perform trunkline."do_hold_emails"(met.ids, met.sizes);
        end if;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 2 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- What is missing is lost, or shares a row with messages that were not named.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        delays := array(select delays[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        errors := array(select errors[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_emails"(ids, sizes, attempts, false);
    end loop;
end ;

function do_cut_emails(n integer, floor timestamp with time zone) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    turn record;
begin
    
    if false then
        n := trunkline."do_allowed_emails"(n, false);
    end if;
    if false then
        turn := trunkline."do_turn_emails"(floor, array_fill(0::bigint, array[1]));
        if turn.lane is not null then
            perform trunkline."do_gather_emails"(n, 1, true, 0, floor[turn.lane + 1], 0, turn.lane, turn.bound);
        end if;
    else
        perform trunkline."do_gather_emails"(n, 1, true, 0, floor, 0);
    end if;
end ;

function do_dead_emails(after bigint, n bigint) returns SETOF dead_emails language plpgsql stable set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
begin
    return query select d.* from trunkline."dead_emails" d where d.id > after order by d.id limit n;
end ;

function do_discard_emails(ids bigint[], n bigint) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
begin
    if ids is null then
        ids := array(select d.id from trunkline."dead_emails" d order by d.id limit n for update skip locked);
    else
        ids := array(select d.id from trunkline."dead_emails" d where d.id = any (ids) order by d.id limit n for update skip locked);
    end if;
    return query delete from trunkline."dead_emails" d where d.id = any (ids) returning d.id;
end ;

function do_extend_emails(ids bigint[], sizes integer[], attempts integer[], lease interval) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
    holders text[];
begin
    if false then
        -- Their lanes come last, and whoever gives the queue more of them locks these first.
        holders := array(select h.lane || ' ' || h.holder from trunkline."lane_emails" h where h.holder is not null);
    end if;
    for pass in 1..2 loop
        with held as (
            update trunkline."queue_emails" q set due_at = trunkline.clock() + trunkline.check_lease(lease)
            from unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.size, d.attempt as under)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        if false then
            perform trunkline."do_keep_emails"(met.ids, lease, holders);
        end if;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 2 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- What is missing is lost, or shares a row with messages that were not named.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_emails"(ids, sizes, attempts, true);
    end loop;
end ;

function do_find_emails(message bigint) returns TABLE(state text, attempt integer, due_at timestamp with time zone, ended_at timestamp with time zone, enqueued_at timestamp with time zone, error text, payload jsonb, metadata jsonb, priority integer, key text) language plpgsql stable set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    return query
        select case when q.due_at <= clock then 'due' when q.error is not null then 'retrying'
                    when q.attempt = 0 then 'delayed' else 'leased' end,
               q.attempt, q.due_at, null::timestamptz, q.enqueued_at, q.error,
               q.payload[(message - q.id)::int + 1], q.metadata[(message - q.id)::int + 1], 0, null::text
        from (select r.* from trunkline."queue_emails" r
              where r.id <= message and r.id >= message / 1024 * 1024 order by r.id desc limit 1) q
        where message - q.id < q.size;
    if not found then
        return query select 'dead', q.attempt, null::timestamptz, q.dead_at, q.enqueued_at, q.error, q.payload, q.metadata, 0, null::text
            from trunkline."dead_emails" q where q.id = message;
    end if;
    if not found then
        return query select 'archived', q.attempt, null::timestamptz, q.archived_at, q.enqueued_at, null, q.payload, q.metadata, 0, null::text
            from trunkline."archive_emails" q where q.id = message;
    end if;
end ;

function do_gather_emails(n integer, rows integer, cut boolean, apart integer, INOUT due timestamp with time zone, INOUT id bigint, OUT tids tid[], OUT got integer, OUT ran_out boolean, OUT more boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
declare
    until timestamptz := clock_timestamp();
    line record;
    seen record;
    wanted int := rows;
    parts int := 0;
    moved int;
begin
    tids := '{}';
    got := 0;
    ran_out := false;
    more := false;
    if false then
        return;
    end if;
    while n > 0 loop
        if rows > 1 then
            -- What is usual: whatever is due fits as it is. Then neither a running total nor a second look is needed.
            with  due_row as materialized (
                select q.ctid as tid, q.id, q.due_at as due_at, q.size,
                       q.attempt - q.released >= 10
                       or q.attempt > 0 and q.error is null and (q.size > 1 or (apart > 0)) as awkward
                from trunkline."queue_emails" q where (q.due_at, q.id + 0) >= (due, id) and q.due_at <= until order by q.due_at, q.id + 0 limit rows for update skip locked
            )
            select count(*)::int as seen, count(*)::int as locked, sum(d.size) as size, bool_or(d.awkward) as awkward, max(d.due_at) as due,
                   array_agg(d.tid order by d.due_at, d.id) as tids
            into line from due_row d;
            if line.locked = 0 then
                return;
            elsif line.locked < line.seen then
                rows := rows / 2; -- only what stands before it
                continue;
            elsif line.size <= n and not line.awkward then
                tids := line.tids;
                got := line.size;
                more := line.locked = rows and got < n;
                if more then
                    due := line.due;
                    id := (select q.id + 1 from trunkline."queue_emails" q where q.ctid = tids[line.locked]);
                end if;
                return;
            end if;
        end if;
        if rows = 1 then
            -- One row needs no running total.
             select 1 as locked, array[q.ctid] as tids, q.size as got, q.id as first, q.size,
                   q.attempt - q.released >= 10 as spent,
                   q.attempt > 0 and q.error is null as vanished, (apart > 0) as alone, false as mixed,
                   (q.size <= n and q.attempt - q.released < 10
                    and (q.attempt = 0 or q.error is not null or q.size = 1 and not (apart > 0)))::int as fitting,
                   q.due_at as due, q.id as id, array[q.ctid] as spent_tids, q.due_at as next_due, q.id + 1 as next_id
            into seen
            from trunkline."queue_emails" q where (q.due_at, q.id + 0) >= (due, id) and q.due_at <= until order by q.due_at, q.id + 0 limit rows for update skip locked;
            if not found then
                return;
            end if;
        else
            with due_row as materialized (
                select q.ctid as tid, q.id, q.due_at as due_at, q.size,
                       q.attempt - q.released >= 10 as spent,
                       q.attempt > 0 and q.error is null as vanished, (apart > 0) as alone, false as mixed
                from unnest(line.tids) d(tid) join trunkline."queue_emails" q on q.ctid = d.tid
            ), total as (
                select d.*, row_number() over w as nr,
                       sum(d.size) over w <= n and not bool_or(d.spent or d.mixed or d.vanished and (d.size > 1 or d.alone)) over w as fits
                from due_row d window w as (order by d.due_at, d.id)
            )
            select count(*)::int as locked,
                   array_agg(l.tid order by l.nr) filter (where l.fits) as tids,
                   (sum(l.size) filter (where l.fits))::int as got,
                   min(l.id) filter (where l.nr = 1) as first, min(l.size) filter (where l.nr = 1) as size,
                   bool_or(l.spent) filter (where l.nr = 1) as spent, bool_or(l.vanished) filter (where l.nr = 1) as vanished,
                   bool_or(l.alone) filter (where l.nr = 1) as alone, bool_or(l.mixed) filter (where l.nr = 1) as mixed,
                   (count(*) filter (where l.fits))::int as fitting,
                   max(l.due_at) filter (where l.fits) as due,
                   (array_agg(l.id order by l.nr desc) filter (where l.fits))[1] as id,
                   array_agg(l.tid) filter (where l.spent) as spent_tids,
                   coalesce(min(l.due_at) filter (where not l.spent), max(l.due_at)) as next_due,
                   coalesce((array_agg(l.id order by l.nr) filter (where not l.spent))[1],
                            (array_agg(l.id order by l.nr desc))[1] + 1) as next_id
            into seen from total l;
        end if;
        if seen.fitting < seen.locked and not cut then
            raise exception sqlstate 'TL000' using message = seen.fitting::text;
        elsif seen.locked = 0 then
            return;
        elsif seen.fitting > 0 then
            tids := seen.tids;
            got := seen.got;
            more := got < n;
            due := seen.due;
            id := seen.id + 1;
            return;
        elsif seen.spent then
            -- All that are spent among these; then on from the first that is not, with more at a time while none is.
            with gone as (
                delete from trunkline."queue_emails" q using unnest(seen.spent_tids) d(tid) where q.ctid = d.tid
                returning q.id, q.enqueued_at, q.attempt, q.released, q.size, q.payload, q.metadata, case when trunkline."do_own_emails"() is not null then trunkline.own(trunkline."do_own_emails"(), q.*) end as own)
            insert into trunkline."dead_emails" (id, enqueued_at, attempt, released, error, payload, metadata, own)
            select g.id + m.k, g.enqueued_at, g.attempt - g.released, g.released, 'the lease of the last attempt ran out', m.payload, m.metadata, g.own
            from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m where m.k is not null;
            rows := case when cardinality(seen.spent_tids) < seen.locked then wanted else least(greatest(rows, 8) * 2, 1024) end;
            due := seen.next_due;
            id := seen.next_id;
        elsif seen.mixed then
            -- Rows of such a key alone move as they are, some hundred in a call, and rows that have to be cut one or two: what is due to others must
            -- not wait for the backlog of one.
            exit when parts >= 6;
            moved := 0;
            if rows > 1 then
                update trunkline."queue_emails" q set line = q.keys[1] from unnest(line.tids) d(tid)
                where q.ctid = d.tid and q.keys[1] = any (lined) and q.keys <@ q.keys[1:1];
                get diagnostics moved = row_count;
                rows := case when moved = line.locked then least(2 * rows, 64) else wanted end;
            end if;
            if moved = 0 then
                perform trunkline."do_part_emails"(seen.first, lined);
            end if;
            parts := parts + case when moved > 0 then 1 else 3 end;
        elsif seen.vanished and seen.size > 1 then
            exit when seen.alone and apart in (2, 4);
            perform trunkline."do_split_emails"(seen.first, array(select generate_series(1, seen.size)));
            rows := case when seen.alone then 1 else rows end;
        elsif seen.vanished and seen.alone then
            exit when apart in (2, 4);
            if rows = 1 then
                tids := seen.tids;
                got := 1;
                ran_out := true;
                due := seen.due;
                id := seen.id + 1;
                return;
            end if;
            rows := 1;
        else
            perform trunkline."do_split_emails"(seen.first, array[n]);
        end if;
    end loop;
end ;

function do_gone_emails(ids bigint[], attempts integer[]) returns SETOF bigint language plpgsql stable set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
begin
    return query
        select d.id from unnest(ids, attempts) d(id, attempt)
        left join lateral (select r.id, r.size, r.attempt, r.error from trunkline."queue_emails" r
                           where r.id <= d.id and r.id >= d.id / 1024 * 1024 order by r.id desc limit 1) q on true
        where (d.id - q.id < q.size and q.attempt = d.attempt and q.error is null) is not true;
end ;

function do_heads_emails(n integer, rows integer, apart boolean, floor timestamp with time zone, OUT due timestamp with time zone, OUT id bigint, OUT tids tid[], OUT got integer, OUT ran_out boolean, OUT more boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
    head_start constant interval := '00:01:00'::interval;
    most int := rows + rows / 2 + 8;
    seen record;
begin
    tids := '{}';
    got := 0;
    ran_out := false;
    more := false;
    if false then
        return;
    end if;
    with head as materialized (
        select h.*, h.due_at - l.nr * head_start as rank
        from generate_series(1 - 1, 0, -1) l(nr), lateral (
            select q.ctid as tid, q.id, q.due_at, q.size, q.attempt,
                   q.attempt - q.released >= 10 or q.attempt > 0 and q.error is null and (q.size > 1 or apart) as awkward
            from trunkline."queue_emails" q
            where q.lane = l.nr and (q.due_at, q.id + 0) >= (floor[l.nr + 1], 0) and q.due_at <= clock
            order by q.due_at, q.id + 0 limit most) h
        limit most -- of all lanes together: a backlog is not read for nothing
    ), whole as materialized (
        select count(*) as seen, count(*) < most and sum(h.size) <= n and not bool_or(h.awkward) as fits from head h
    ), fitting as materialized (
        select h.* from head h, whole w where w.fits
    ), locked as materialized (
        select f.rank, f.id, q.ctid as tid, q.size
        from fitting f join trunkline."queue_emails" q on q.ctid = f.tid
        where q.due_at = f.due_at and q.attempt = f.attempt and q.size = f.size
        for update of q skip locked
    )
    select array_agg(l.tid order by l.rank, l.id) as tids, sum(l.size) as got, (select w.seen > 0 and not w.fits from whole w) as more
    into seen from locked l;
    more := seen.more;
    if seen.got > 0 then
        tids := seen.tids;
        got := seen.got;
    end if;
end ;

function do_hold_emails(ids bigint[], sizes integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    r record;
begin
    for r in
        select q.id, q.lane, q.keys, q.due_at from unnest(ids, sizes) d(id, size)
        join trunkline."queue_emails" q on q.id >= d.id and q.id < d.id + d.size
        where q.error is not null order by q.id
    loop
        insert into trunkline."line_emails" as l (lane, key, until)
        select r.lane, k.key, r.due_at from (select distinct u.key from unnest(r.keys) u(key)) k order by k.key
        on conflict (lane, key) do update set until = greatest(l.until, excluded.until);
        perform trunkline."do_part_emails"(r.id, r.keys);
    end loop;
end ;

function do_holdlane_emails(lanes integer[], holder bigint, until timestamp with time zone, floor timestamp with time zone) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    l int;
begin
    for l in select u.lane from unnest(lanes) u(lane) order by u.lane loop
        update trunkline."lane_emails" h
        set holder = holder, held_until = greatest(h.held_until, until), served_at = clock_timestamp(), wanted_until = '-infinity',
            starts_until = greatest(h.starts_until, clock_timestamp() + (until - clock_timestamp()) / 3),
            empty_at = case when h.holder = holder and h.held_until > clock_timestamp() then h.empty_at else greatest(h.empty_at, h.starts_until) end,
            floor = greatest(h.floor, least(floor, (
                select q.place from trunkline."queue_emails" q where q.lane = l and q.line = '' and (q.place, q.id + 0) >= (h.floor, 0)
                order by q.place, q.id + 0 limit 1)))
        where h.lane = l;
    end loop;
end ;

function do_keep_emails(ids bigint[], lease interval, holders text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    l record;
begin
    if exists (select from trunkline."lane_emails" h where h.lane >= 0 and h.served_at > clock_timestamp()) then
        perform trunkline."do_right_emails"(1);
    end if;
    for l in
        select h.lane, h.holder, h.held_until < clock_timestamp() + lease as ends from trunkline."lane_emails" h
        where h.lane in (select q.lane from unnest(ids) d(id) join trunkline."queue_emails" q on q.id = d.id)
        order by h.lane for update
    loop
        if l.lane || ' ' || l.holder <> all (holders) is not false then
            raise exception 'the leases of queue % ended before they were extended', 'emails' using errcode = 'TL001',
                hint = 'Nothing was extended. What was held may be someone else''s now.';
        end if;
        continue when not l.ends;
        update trunkline."lane_emails" h
        set held_until = clock_timestamp() + lease * 1.5, starts_until = greatest(h.starts_until, clock_timestamp() + lease / 2),
            served_at = clock_timestamp()
        where h.lane = l.lane;
    end loop;
end ;

function do_keyed_emails(payloads jsonb[], keys text[], delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], due timestamp with time zone DEFAULT NULL::timestamp with time zone) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
begin
    if delay is null or delay < '0' or delay > '36500 days' then
        raise exception 'a delay of % is out of bounds', coalesce(delay::text, 'null') using errcode = 'invalid_parameter_value',
            hint = 'A delay is at least zero and at most 36500 days.';
    elsif payloads is null then
        raise exception 'the payloads of queue % are null', 'emails' using errcode = 'null_value_not_allowed',
            hint = 'Pass an array; an empty one enqueues nothing.';
    elsif array_ndims(payloads) > 1 then
        raise exception 'the payloads are an array of % dimensions', array_ndims(payloads)
            using errcode = 'array_subscript_error', hint = 'Pass one dimension.';
    end if;
    perform trunkline.check_keys('emails', keys, cardinality(payloads));
    payloads := payloads[:];
    if metadata is not null then
        if cardinality(metadata) <> cardinality(payloads) then
            raise exception '% payloads have metadata for %', cardinality(payloads), cardinality(metadata)
                using errcode = 'invalid_parameter_value', hint = 'Pass one for each payload, null for those without.';
        end if;
        perform trunkline.check_metadata(m) from unnest(metadata) m;
    end if;
    return query
        with message as (
            select m.nr, m.payload, m.metadata, m.key, 0 + trunkline.lane_of(m.key, 0) as lane,
                   trunkline.payload_bytes('emails', pg_column_size(m.payload)) + coalesce(pg_column_size(m.metadata), 0) as bytes
            from (select generate_series(1, cardinality(payloads)) as nr, unnest(payloads) as payload, unnest(metadata) as metadata,
                         unnest(keys) as key) m
        ), placed as (
            select m.*, row_number() over w as at, (sum(m.bytes) over w - m.bytes)::bigint / 65536 as page
            from message m window w as (partition by m.lane order by m.nr)
        ), batch as (
            select array_agg(p.nr order by p.nr) as nrs, count(*)::int as size, array_agg(p.payload order by p.nr) as payload, p.lane,
                   case when count(p.metadata) > 0 then array_agg(p.metadata order by p.nr) end as metadata, array_agg(p.key order by p.nr) as keys,
                   row_number() over (order by min(p.nr)) as batch
            from placed p group by p.lane, p.page, p.bytes > 65536, (p.at - 1) / 1024
        ), stored as (
            insert into trunkline."queue_emails" (due_at, size, payload, metadata, lane, keys)
            select greatest(trunkline.clock(), due) + delay, b.size, b.payload, b.metadata, b.lane, b.keys from batch b order by b.batch
            returning id
        ), numbered as (
            select s.id, row_number() over (order by s.id) as batch from stored s
        )
        select n.id + m.at - 1 from numbered n join batch b on b.batch = n.batch, unnest(b.nrs) with ordinality m(nr, at) order by m.nr;
    if cardinality(payloads) > 0 then
        perform pg_notify('trunkline.emails', '');
    end if;
end ;

function do_lanes_emails(n integer, lease interval, holder bigint, floor timestamp with time zone DEFAULT '-infinity'::timestamp with time zone, most integer DEFAULT NULL::integer) returns TABLE(id bigint, attempt integer, size integer, enqueued_at timestamp with time zone, due_at timestamp with time zone, payload jsonb[], metadata jsonb[], ran_out boolean, released integer, keys text[], rate double precision[]) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    term interval := case when lease is null then '00:00:30'::interval else trunkline.check_lease(lease) end;
    clock timestamptz := clock_timestamp();
    way int := case when most is null then 3 else 1 end;
    l record;
    at record;
    tids tid[] := '{}';
    untils timestamptz[] := '{}';
    until timestamptz := clock + term * 1.5;
    held int[] := '{}';
    leaving int[] := '{}';
    alone bool := false;
    ran_out_nr int := 0;
    mine int := 0;
    allowed int;
    others int;
    ahead bool := false;
    later bool;
begin
    if false then
        n := trunkline."do_allowed_emails"(n, true);
    end if;
    allowed := n;
    for l in
        select h.lane, h.wanted_until > clock as wanted, h.held_until, h.floor, h.served_at > clock as ahead, (exists (select from trunkline."queue_emails" q where q.lane = h.lane and q.line = '' and (q.place, q.id + 0) >= (h.floor, 0) and q.place <= clock and q.due_at <= clock) or exists (select from trunkline."line_emails" w where w.lane >= h.lane and w.lane <= h.lane and w.until <= clock)) as due from trunkline."lane_emails" h
        where h.lane >= 0 and h.holder = holder and h.held_until > clock order by random()
    loop
        mine := mine + 1;
        if l.ahead then
            ahead := true; -- put right below: the next call goes on with it
            continue;
        elsif l.wanted then
            leaving := leaving || l.lane::int;
            continue;
        end if;
        continue when n <= 0 or alone or not l.due;
        -- Meanwhile its time may have passed, and somebody else may have come: whose a lane is, is certain under its lock alone.
        perform from trunkline."lane_emails" h where h.lane = -1 - l.lane for update skip locked;
        continue when not found;
        continue when not exists (
            select from trunkline."lane_emails" h where h.lane = l.lane and h.holder = holder and h.held_until > clock_timestamp());
        -- Keys with lines of their own have backlogs: one that is read first would leave nothing for the other lanes.
        at := trunkline."do_along_emails"(n, l.lane, l.floor, way, case when most <= 1 then n else n - n / 4 end);
        continue when at.got = 0;
        if l.held_until < clock + term * 1.25 then
            l.held_until := until;
            held := held || l.lane::int;
        end if;
        tids := tids || at.tids;
        untils := untils || array_fill(l.held_until, array[cardinality(at.tids)]);
        n := n - at.got;
        if at.ran_out then
            ran_out_nr := cardinality(tids);
            alone := way = 1;
        end if;
        way := case when at.ran_out and way = 3 then 4 else greatest(way, 2) end;
    end loop;
    if n > 0 and not alone and most is distinct from 0 then
        select count(distinct h.holder) filter (where h.held_until > clock and h.holder <> holder), coalesce(bool_or(h.served_at > clock), false)
        into others, later from trunkline."lane_emails" h where h.lane >= 0;
        ahead := ahead or later;
        most := least(most, (0 + others) / (others + 1));
        for l in
            -- Nothing is leased in a lane without a holder: what is due there is due to whoever gets it.
            select h.lane, h.floor from trunkline."lane_emails" h
            where h.lane >= 0 and h.held_until <= clock
              and (exists (select from trunkline."queue_emails" q where q.lane = h.lane and q.line = '' and (q.place, q.id + 0) >= (h.floor, 0) and q.place <= clock and q.due_at <= clock) or exists (select from trunkline."line_emails" w where w.lane >= h.lane and w.lane <= h.lane and w.until <= clock))
            order by h.served_at
        loop
            exit when n <= 0 or mine >= most or alone;
            perform from trunkline."lane_emails" h where h.lane = l.lane and h.held_until <= clock for update skip locked;
            continue when not found;
            at := trunkline."do_along_emails"(n, l.lane, l.floor, way, case when most <= 1 then n else n - n / 4 end);
            continue when at.got = 0;
            held := held || l.lane::int;
            mine := mine + 1;
            tids := tids || at.tids;
            untils := untils || array_fill(until, array[cardinality(at.tids)]);
            n := n - at.got;
            if at.ran_out then
                ran_out_nr := cardinality(tids);
                alone := way = 1;
            end if;
            way := case when at.ran_out and way = 3 then 4 else greatest(way, 2) end;
        end loop;
        if n > 0 and others > 0 and mine < least(most, 0 / (others + 1)) then
            perform trunkline."do_want_emails"(least(most, 0 / (others + 1)) - mine, 0 / (others + 1), holder, until);
        end if;
    end if;
    if ahead then
        perform trunkline."do_right_emails"(1);
    end if;
    perform trunkline."do_holdlane_emails"(held, holder, until, floor);
    if leaving <> '{}' then
        perform trunkline."do_leave_emails"(leaving, holder);
    end if;
    return query
        with leased as (
            update trunkline."queue_emails" q
            set due_at = greatest(d.until, trunkline.clock()), attempt = q.attempt + 1, error = null
            from unnest(tids, untils) with ordinality d(tid, until, nr)
            where q.ctid = d.tid
            returning d.nr, q.id, q.attempt, q.size, q.enqueued_at, q.due_at, q.payload, q.metadata, q.released, q.keys, q.lane)
        select e.id, e.attempt, e.size, e.enqueued_at, e.due_at, e.payload, e.metadata, e.nr = ran_out_nr, e.released, e.keys,
               null::float8[]
        from leased e order by e.nr;
    if false then
        perform trunkline."do_used_emails"(allowed - n);
    end if;
end ;

function do_lanesin_emails(holder bigint) returns double precision language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
    rests timestamptz;
begin
    if exists (
        select from trunkline."lane_emails" h,
             lateral (select q.keys from trunkline."queue_emails" q
                      where q.lane = h.lane and q.line = '' and (q.place, q.id + 0) >= (h.floor, 0) and q.place <= clock and q.due_at <= clock
                      order by q.place, q.id + 0 limit 1) f
        where h.lane in (select w.lane from trunkline."line_emails" w) and (h.holder = holder or h.held_until <= clock)
          and f.keys && array(select w.key from trunkline."line_emails" w where w.lane = h.lane)) then
        return 0;
    end if;
    rests := (
        select min(w.until) from trunkline."lane_emails" h join trunkline."line_emails" w on w.lane = h.lane,
             lateral (select q.due_at from trunkline."queue_emails" q where q.lane = w.lane and q.line = w.key order by q.place, q.id + 0 limit 1) f
        where h.holder = holder and h.held_until > clock and w.until > clock and w.until <= clock + interval '1 second' and f.due_at <= clock);
    if rests is not null then
        return -extract(epoch from rests - clock);
    end if;
    return extract(epoch from least(
        (select q.due_at from trunkline."queue_emails" q where q.due_at > clock order by q.due_at, q.id + 0 limit 1),
        
        (select min(h.held_until) from trunkline."lane_emails" h where h.lane >= 0 and h.held_until > clock and h.holder <> holder)) - clock)::float8;
end ;

function do_lease_emails(n integer, lease interval DEFAULT NULL::interval, floor timestamp with time zone DEFAULT '-infinity'::timestamp with time zone, rows integer DEFAULT 1, apart boolean DEFAULT false) returns TABLE(id bigint, attempt integer, size integer, enqueued_at timestamp with time zone, due_at timestamp with time zone, payload jsonb[], metadata jsonb[], ran_out boolean, released integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    term interval := case when lease is null then '00:00:30'::interval else trunkline.check_lease(lease) end;
    way int := apart::int;
    at record;
    due timestamptz;
    until timestamptz := clock_timestamp();
    next_id bigint := 0;
    turn record;
    dues timestamptz[];
    next_ids bigint[];
    by_lane bool := false and n = 1;
    used int := 0;
begin
    
    if false then
        dues := floor;
        next_ids := array_fill(0::bigint, array[1]);
    else
        due := floor;
    end if;
    if false then
        n := trunkline."do_allowed_emails"(n, true);
    end if;
    if n between 1 and rows and not false and not false and not false then
        -- What is usual where messages are few: all that is due fits as it is, and goes by one statement.
        if n = 1 then
            return query
                with head as materialized (
                    select q.ctid as tid, q.size > 1 or q.attempt - q.released >= 10 or q.attempt > 0 and q.error is null and apart as awkward
                    from trunkline."queue_emails" q where (q.due_at, q.id + 0) >= (due, 0) and q.due_at <= until
                    order by q.due_at, q.id + 0 limit 1 for update skip locked)
                update trunkline."queue_emails" q
                set due_at = trunkline.clock() + term, attempt = q.attempt + 1, error = null
                from head h where q.ctid = h.tid and not h.awkward
                returning q.id, q.attempt, q.size, q.enqueued_at, q.due_at, q.payload, q.metadata, false, q.released;
        else
            return query
                with head as materialized (
                    select q.ctid as tid, q.due_at, q.id, q.size,
                           q.attempt - q.released >= 10 or q.attempt > 0 and q.error is null and (q.size > 1 or apart) as awkward
                    from trunkline."queue_emails" q where (q.due_at, q.id + 0) >= (due, 0) and q.due_at <= until
                    order by q.due_at, q.id + 0 limit rows for update skip locked
                ), whole as materialized (
                    select sum(h.size) <= n and not bool_or(h.awkward) as fits from head h
                ), leased as (
                    update trunkline."queue_emails" q
                    set due_at = trunkline.clock() + term, attempt = q.attempt + 1, error = null
                    from head h, whole w where w.fits and q.ctid = h.tid
                    returning h.due_at as was_due, q.id, q.attempt, q.size, q.enqueued_at, q.due_at, q.payload, q.metadata, q.released)
                select l.id, l.attempt, l.size, l.enqueued_at, l.due_at, l.payload, l.metadata, false, l.released
                from leased l order by l.was_due, l.id;
        end if;
        if found then
            return;
        end if;
    end if;
    while n > 0 loop
        if false and not by_lane then
            at := trunkline."do_heads_emails"(n, rows, apart, floor);
            by_lane := at.more;
        elsif false then
            turn := trunkline."do_turn_emails"(dues, next_ids);
            exit when turn.lane is null;
            at := trunkline."do_gather_emails"(n, rows, true, way, dues[turn.lane + 1], next_ids[turn.lane + 1], turn.lane, turn.bound);
            -- Where nothing more is there, others hold it, or it is behind the bound.
            dues[turn.lane + 1] := case when at.more then at.due else turn.bound end;
            next_ids[turn.lane + 1] := case when at.more then at.id else 9223372036854775807 end;
        else
            at := trunkline."do_gather_emails"(n, rows, true, way, due, next_id);
        end if;
        continue when at.got = 0 and by_lane;
        exit when at.got = 0;
        if cardinality(at.tids) = 1 then
            -- What is usual where messages are few, and needs no order.
            return query
                update trunkline."queue_emails" q
                set due_at = trunkline.clock() + term, attempt = q.attempt + 1, error = null
                where q.ctid = at.tids[1]
                returning q.id, q.attempt, q.size, q.enqueued_at, q.due_at, q.payload, q.metadata, at.ran_out, q.released;
        else
            return query
                with leased as (
                    update trunkline."queue_emails" q
                    set due_at = trunkline.clock() + term, attempt = q.attempt + 1, error = null
                    from unnest(at.tids) with ordinality d(tid, nr)
                    where q.ctid = d.tid
                    returning d.nr, q.id, q.attempt, q.size, q.enqueued_at, q.due_at, q.payload, q.metadata, q.released)
                select l.id, l.attempt, l.size, l.enqueued_at, l.due_at, l.payload, l.metadata, at.ran_out, l.released
                from leased l order by l.nr;
        end if;
        used := used + at.got;
        exit when at.ran_out or not at.more and not by_lane;
        n := n - at.got;
        rows := least(n, 1 + n::bigint * cardinality(at.tids) / at.got);
        way := least(2 * way, 2); -- what ran out comes with nobody else
        due := at.due;
        next_id := at.id;
    end loop;
    if false then
        perform trunkline."do_used_emails"(used);
    end if;
end ;

function do_leased_emails() returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
declare
    clock timestamptz := clock_timestamp();
begin
    return (select coalesce(sum(q.size), 0) from trunkline."queue_emails" q
            where q.attempt > 0 and q.error is null and q.due_at > clock);
end ;

function do_leave_emails(lanes integer[], holder bigint) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    update trunkline."lane_emails" g set holder = null, held_until = '-infinity', wanted_until = '-infinity', starts_until = least(g.starts_until, clock)
    from (select h.lane from trunkline."lane_emails" h
          where h.lane >= 0 and h.holder = holder and (lanes is null or h.lane = any (lanes)) and h.held_until > clock
          order by h.lane for update) h
    where g.lane = h.lane
      and g.lane <> all (array( -- once for all, along the due times, where leases end; not along the lanes, with all that waits in them
        select distinct q.lane from trunkline."queue_emails" q where q.attempt > 0 and q.error is null and q.due_at > clock));
    if found then
        perform pg_notify('trunkline.emails', '');
    end if;
end ;

function do_line_emails(keys text[], pauses double precision[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
begin
    perform from trunkline."lane_emails" where false; -- locked first by whoever gives the queue more lanes
    insert into trunkline."line_emails" as l (lane, key, until)
    select h.lane, k.key, clock_timestamp() + k.pause * interval '1 second'
    from unnest(keys, pauses) k(key, pause)
    join trunkline."lane_emails" h on h.lane = 0 + trunkline.lane_of(k.key, 0) -- there may be others since the call began
    order by 1, 2
    on conflict (lane, key) do update set until = greatest(l.until, excluded.until);
end ;

function do_look_emails(floor timestamp with time zone) returns TABLE(oldest timestamp with time zone, candidate timestamp with time zone, due_in double precision, running bigint, next bigint, cost double precision) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    began timestamptz := clock_timestamp();
begin
    if false then
        return query
            select o.due_at, least(o.due_at, now()),
                   case when not false then greatest(extract(epoch from o.due_at - clock_timestamp())::float8,
                                                        case when false then trunkline."do_allowedin_emails"() end) end,
                   pg_snapshot_xmin(s)::text::bigint,
                   pg_snapshot_xmin(s)::text::bigint + age(pg_snapshot_xmin(s)::xid),
                   extract(epoch from clock_timestamp() - began)::float8
            from pg_current_snapshot() s cross join generate_series(0, 1 - 1) l(lane)
            left join lateral (
                select q.due_at from trunkline."queue_emails" q where q.lane = l.lane and q.due_at >= floor[l.lane + 1] order by q.due_at, q.id + 0 limit 1) o on true
            order by l.lane;
    else
        return query
            select o.due_at, least(o.due_at, now()),
                   case when not false then greatest(extract(epoch from o.due_at - clock_timestamp())::float8,
                                                        case when false then trunkline."do_allowedin_emails"() end) end,
                   pg_snapshot_xmin(s)::text::bigint,
                   pg_snapshot_xmin(s)::text::bigint + age(pg_snapshot_xmin(s)::xid),
                   extract(epoch from clock_timestamp() - began)::float8
            from pg_current_snapshot() s
            left join lateral (
                select q.due_at from trunkline."queue_emails" q where q.due_at >= floor order by q.due_at, q.id + 0 limit 1) o on true;
    end if;
end ;

function do_lower_emails(low tid, high tid) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    stray record;
begin
    if current_setting('transaction_read_only') = 'on' or not has_column_privilege('trunkline."lane_emails"', 'floor', 'update') then
        return;
    elsif low is null then
        select array_agg(l.lane) as lanes, array_agg(f.place) as places into stray
        from trunkline."lane_emails" l, lateral (
            select q.place from trunkline."queue_emails" q where q.lane = l.lane and q.line = '' order by q.place, q.id + 0 limit 1) f
        where l.lane >= 0 and f.place < l.floor;
    else
        select array_agg(f.lane) as lanes, array_agg(f.place) as places into stray
        from (select q.lane, min(q.place) as place from trunkline."queue_emails" q where q.ctid >= low and q.ctid < high and q.line = '' group by q.lane) f
        join trunkline."lane_emails" l on l.lane = f.lane where f.place < l.floor;
    end if;
    if stray.lanes is not null then
        update trunkline."lane_emails" h set floor = least(h.floor, s.place)
        from (select l.lane, u.place from unnest(stray.lanes, stray.places) u(lane, place) join trunkline."lane_emails" l on l.lane = u.lane
              order by l.lane for update of l skip locked) s
        where h.lane = s.lane;
    end if;
end ;

function do_own_emails() returns text language plpgsql immutable set search_path=pg_catalog, pg_temp as 
declare
    r trunkline."queue_emails"%rowtype;
    own jsonb;
begin
    r.size := 0; -- else it is null as a whole
    own := to_jsonb(r) - array['id', 'enqueued_at', 'due_at', 'attempt', 'released', 'size', 'error', 'payload', 'metadata']
        - array[]::text[]; -- which costs less by itself
    if own = '{}' then
        return null;
    end if;
    return (select format('select jsonb_object(%L::text[], array[%s])', array_agg(o.name), string_agg(format('($1).%I::text', o.name), ', '))
            from jsonb_object_keys(own) o(name));
end ;

function do_part_emails(row_id bigint, lined text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    r record;
    cuts int[];
begin
    select q.size, q.keys into r from trunkline."queue_emails" q where q.id = row_id;
    cuts := array(
        select k.at::int from (select u.key, u.nr - 1 as at, lag(u.key) over (order by u.nr) as before
                               from unnest(r.keys) with ordinality u(key, nr)) k
        where k.at > 0 and k.key <> k.before and (k.key = any (lined) or k.before = any (lined)));
    if cuts = '{}' then
        update trunkline."queue_emails" q set line = q.keys[1] where q.id = row_id and q.keys[1] = any (lined);
    else
        perform trunkline."do_split_emails"(row_id, cuts, lined);
    end if;
end ;

function do_peek_emails(after_due timestamp with time zone, after_id bigint, n bigint) returns SETOF queue_emails language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
begin
    if false then
        return query
            select o.* from generate_series(0, 1 - 1) l(lane),
                 lateral (select q.* from trunkline."queue_emails" q
                          where q.lane = l.lane and (q.due_at, q.id + 0) > (after_due, after_id)
                          order by q.due_at, q.id + 0 limit n) o
            order by o.due_at, o.id limit n;
    else
        return query select q.* from trunkline."queue_emails" q
            where (q.due_at, q.id + 0) > (after_due, after_id) order by q.due_at, q.id + 0 limit n;
    end if;
end ;

function do_pick_emails(ids bigint[], leased boolean, OUT first bigint[], OUT sizes integer[], OUT busy bigint[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    r trunkline."queue_emails"%rowtype;
    wide record;
begin
    first := '{}';
    sizes := '{}';
    busy := '{}';
    if false then
        -- What is cut here is hidden from whoever leases along a lane, and what is behind it must not come first.
        perform from trunkline."lane_emails" h
        where h.lane in (
            select -1 - q.lane from unnest(ids) i(id), lateral (
                select b.lane from trunkline."queue_emails" b where b.id <= i.id and b.id >= i.id / 1024 * 1024 order by b.id desc limit 1) q)
        order by h.lane for update;
    end if;
    for wide in
        with asked as (
            select distinct i.id from unnest(ids) i(id) where i.id >= 0
        ), mark as materialized (
            select a.id as at, null::bigint[] as begun from asked a
            union all
            select q.id, array[q.id, q.size]
            from (select distinct a.id / 1024 * 1024 as id from asked a) block,
                 lateral (select q.id, q.size from trunkline."queue_emails" q
                          where q.id >= block.id and q.id <= block.id + 1023) q
        ), met as (
            select m.at, m.begun is null as named,
                   max(m.begun) over (order by m.at, m.begun is null rows unbounded preceding) as begun
            from mark m
        ), run as (
            select n.begun, min(n.at) as at, count(*)::int as size
            from (select m.begun, m.at, m.at - row_number() over (order by m.at) as island
                  from met m where m.named and m.at - m.begun[1] < m.begun[2]) n
            group by n.begun, n.island
        )
        select u.begun[1] as id, u.begun[2] as size, array_agg(u.at order by u.at) as runs,
               array_agg(u.size order by u.at) as sizes, sum(u.size) as named
        from run u group by u.begun order by u.begun
    loop
        select * into r from trunkline."queue_emails" q where q.id = wide.id for update skip locked;
        if not found or r.size <> wide.size then
            -- Also what was taken or cut meanwhile, which a fresh snapshot will tell.
            busy := busy || array(
                select k from unnest(wide.runs, wide.sizes) d(id, size), generate_series(d.id, d.id + d.size - 1) k);
        elsif leased or r.attempt = 0 or r.error is not null or r.due_at <= clock_timestamp() then
            if wide.named < wide.size then
                perform trunkline."do_split_emails"(wide.id, array(
                    select (e.at - wide.id)::int from unnest(wide.runs, wide.sizes) d(id, size), lateral (values (d.id), (d.id + d.size)) e(at)));
            end if;
            first := first || wide.runs;
            sizes := sizes || wide.sizes;
        end if;
    end loop;
    if false and first <> '{}' then
        -- What a key waited for may be gone, or come sooner.
        update trunkline."line_emails" l set until = '-infinity'
        where (l.lane, l.key) in (select q.lane, q.line from unnest(first, sizes) d(id, size)
                                  join trunkline."queue_emails" q on q.id >= d.id and q.id < d.id + d.size where q.line <> '');
    end if;
end ;

function do_prune_emails(age interval) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    before timestamptz := clock_timestamp() - age;
    count bigint;
begin
    update trunkline."archive_emails" a set archived_at = before + age where a.archived_at > before + age;
    delete from trunkline."archive_emails" a where a.archived_at < before;
    get diagnostics count = row_count;
    return count;
end ;

function do_release_emails(ids bigint[], sizes integer[], attempts integer[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..2 loop
        with held as (
            update trunkline."queue_emails" q set due_at = trunkline.clock(), released = q.released + 1, error = ''
            from unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.size, d.attempt as under)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 2 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- What is missing is lost, or shares a row with messages that were not named.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_emails"(ids, sizes, attempts, true);
    end loop;
end ;

function do_replay_emails(ids bigint[], n bigint) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    letter trunkline."dead_emails"%rowtype;
    plain bigint;
    taken bigint[];
begin
    if ids is null then
        ids := array(select d.id from trunkline."dead_emails" d order by d.id limit n for update skip locked);
    else
        ids := array(select d.id from trunkline."dead_emails" d where d.id = any (ids) order by d.id limit n for update skip locked);
    end if;
    -- Where the sequence fell behind, a message may have the id by now: then the letter comes back under another (see trunkline.keep_letter).
    taken := array(
        select d.id from unnest(ids) d(id) where exists (
            select from trunkline."queue_emails" q where q.id <= d.id and q.id >= d.id / 1024 * 1024 and q.id + q.size > d.id));
    if taken <> '{}' then
        ids := array(select d.id from unnest(ids) d(id) where d.id <> all (taken));
        for plain in update trunkline."dead_emails" d set id = d.id where d.id = any (taken) returning d.id loop
            ids := ids || plain;
        end loop;
    end if;
    return query
        with back as (delete from trunkline."dead_emails" d where d.id = any (ids) and d.own is null returning d.*)
        insert into trunkline."queue_emails" as q (id, enqueued_at, attempt, released, size, error, payload, metadata)
        select b.id, b.enqueued_at, b.attempt + b.released, b.attempt + b.released, 1, '', array[b.payload],
               case when b.metadata is not null then array[b.metadata] end
        from back b order by b.id returning q.id;
    get diagnostics plain = row_count;
    if plain = cardinality(ids) then
        return;
    end if;
    -- The others had values in columns that users added.
    begin
        for letter in delete from trunkline."dead_emails" d where d.id = any (ids) returning d.* loop
            perform trunkline."do_back_emails"(
                letter.id, letter.enqueued_at, letter.attempt + letter.released, letter.attempt + letter.released, '', 1,
                array[letter.payload], case when letter.metadata is not null then array[letter.metadata] end, letter.own);
            return next letter.id;
        end loop;
    exception when data_exception or not_null_violation or check_violation or foreign_key_violation then
        raise exception 'dead letter % of queue % has a value that does not fit a column of yours: %', letter.id, 'emails', sqlerrm
            using errcode = sqlstate, hint = format(
                'Put it right in trunkline.%I, column own; take it out there, and the column''s default stands in; or discard the letter.',
                'dead_' || 'emails');
    end;
end ;

function do_reschedule_emails(ids bigint[], due timestamp with time zone) returns TABLE(id bigint, done boolean) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    picked record;
begin
    if due is null or due > clock_timestamp() + interval '36500 days' then
        raise exception 'a due time of % is out of bounds', coalesce(due::text, 'null') using errcode = 'invalid_parameter_value',
            hint = 'A message is due at most 36500 days from now; a time that has passed means now.';
    end if;
    picked := trunkline."do_pick_emails"(ids, false);
    return query
        with moved as (
            update trunkline."queue_emails" q
            set due_at = case when due > clock_timestamp() then due else least(q.due_at, trunkline.clock()) end,
                error = case when q.attempt > 0 and due > clock_timestamp() then coalesce(q.error, 'the lease ran out') else q.error end
            from unnest(picked.first, picked.sizes) d(id, size)
            where q.id >= d.id and q.id < d.id + d.size
            returning q.id, q.size)
        select m.id + k, true from moved m, generate_series(0, m.size - 1) k;
    return query select b, false from unnest(picked.busy) b;
end ;

function do_retry_emails(ids bigint[], sizes integer[], attempts integer[], delays interval[], errors text[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..2 loop
        with failed as materialized (
            select d.nr, q.ctid as tid, q.attempt as under, q.attempt as attempt,
                   q.attempt - q.released >= 10 as spent, d.delay, d.error
            from unnest(ids, sizes, attempts, delays, errors) with ordinality d(id, size, attempt, delay, error, nr)
            join trunkline."queue_emails" q
              on q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size and q.attempt = d.attempt
             and q.error is null and q.due_at > clock_timestamp()
            for update of q
        ), again as (
            update trunkline."queue_emails" q
            set due_at = trunkline.clock() + f.delay, attempt = f.attempt, error = coalesce(f.error, '')
            from failed f where q.ctid = f.tid and not f.spent
            returning f.nr, q.id, q.size, f.under
        ), gone as (
            delete from trunkline."queue_emails" q using failed f where q.ctid = f.tid and f.spent
            returning f.nr, q.id, q.enqueued_at, q.size, q.payload, q.metadata, case when trunkline."do_own_emails"() is not null then trunkline.own(trunkline."do_own_emails"(), q.*) end as own, f.under, f.attempt - q.released as charged, q.released, f.error as reason
        ), dead as (
            insert into trunkline."dead_emails" (id, enqueued_at, attempt, released, error, payload, metadata, own)
            select g.id + m.k, g.enqueued_at, g.charged, g.released, coalesce(g.reason, ''), m.payload, m.metadata, g.own
            from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m where m.k is not null
        ), held as (
            select a.nr, a.id, a.size, a.under from again a union all select g.nr, g.id, g.size, g.under from gone g)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        if false then
            perform trunkline."do_hold_emails"(met.ids, met.sizes);
        end if;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 2 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- What is missing is lost, or shares a row with messages that were not named.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        delays := array(select delays[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        errors := array(select errors[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_emails"(ids, sizes, attempts, true);
    end loop;
end ;

function do_right_emails(how integer, ahead interval DEFAULT NULL::interval) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
    longest constant interval := '365 days';
    messages bigint;
begin
    if how = 0 and not exists (
            select from generate_series(0, 0) l(lane), lateral (
                select q.enqueued_at, q.due_at, q.attempt > 0 and q.error is null as is_leased from trunkline."queue_emails" q
                where q.due_at > clock + '00:00:30'::interval + interval '1 minute' order by q.due_at desc, q.id + 0 desc limit 8) m
            where m.enqueued_at > clock or m.is_leased and m.due_at > clock + longest) then
        return 0;
    end if;
    clock := trunkline.clock();
    if false then
        ahead := greatest(ahead, (select max(h.served_at) - clock from trunkline."lane_emails" h where h.lane >= 0 and h.served_at > clock));
    end if;
    with late as materialized (
        select q.ctid as tid,
               case when q.attempt > 0 and q.error is null then
                        least(case when q.enqueued_at > clock then q.due_at - (q.enqueued_at - clock)
                                   when q.due_at > clock + longest then clock + '00:00:30'::interval else q.due_at end,
                              case when how = 2 then clock + '00:00:30'::interval else 'infinity' end)
                    when q.enqueued_at > clock then greatest(q.due_at - (q.enqueued_at - clock), clock)
                    when q.error <> '' and q.due_at <= clock + longest then greatest(q.due_at - ahead, clock)
                    else clock end as due_at
        from trunkline."queue_emails" q
        where q.due_at > clock
          and (q.enqueued_at > clock or q.attempt > 0 and (q.error = '' or q.due_at > clock + longest or q.error <> '' and q.due_at > clock + ahead / 2)
               or how = 2 and q.attempt > 0 and q.error is null and q.due_at > clock + '00:00:30'::interval)
        order by q.id for update skip locked
    ), put as (
        update trunkline."queue_emails" q
        set due_at = a.due_at, enqueued_at = least(q.enqueued_at, clock)
        from late a where q.ctid = a.tid
        returning q.size)
    select coalesce(sum(p.size), 0) into messages from put p;
    if false then
        with late as materialized (
            select h.lane, h.served_at - clock as ahead from trunkline."lane_emails" h where h.lane >= 0 and h.served_at > clock
            order by h.lane for update skip locked)
        update trunkline."lane_emails" h
        set served_at = clock, floor = '-infinity', held_until = h.held_until - a.ahead,
            wanted_until = case when h.wanted_until > clock then h.wanted_until - a.ahead else h.wanted_until end,
            starts_until = case when h.starts_until > clock then h.starts_until - a.ahead else h.starts_until end,
            empty_at = case when h.empty_at > clock then h.empty_at - a.ahead else h.empty_at end
        from late a where h.lane = a.lane;
        update trunkline."queue_emails" q set due_at = o.due_at
        from (select q.ctid as tid, h.held_until as due_at from trunkline."queue_emails" q join trunkline."lane_emails" h on h.lane = q.lane
              where q.due_at > clock and q.attempt > 0 and q.error is null and h.held_until > clock and q.due_at > h.held_until
              order by q.id for update of q skip locked) o
        where q.ctid = o.tid;
        update trunkline."line_emails" l set until = o.until
        from (select l.lane, l.key, greatest(clock + interval '1 second', (
                         select max(q.due_at) from trunkline."queue_emails" q
                         where q.lane = l.lane and q.line = l.key and q.error is not null and q.due_at > clock)) as until
              from trunkline."line_emails" l where l.until > clock + interval '1 second' for update of l skip locked) o
        where l.lane = o.lane and l.key = o.key and l.until > o.until;
    end if;
    null;
    if false then
        update trunkline.bucket b set filled_at = clock where b.queue = 'emails' and b.filled_at > clock;
    end if;
    if messages > 0 then
        perform pg_notify('trunkline.emails', '');
    end if;
    return messages;
end ;

function do_shift_emails(passed interval) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    began timestamptz := trunkline.clock();
    messages bigint;
begin
    if passed is null or passed < '0' or passed > '36500 days' then
        raise exception 'a time of % is out of bounds', coalesce(passed::text, 'null') using errcode = 'invalid_parameter_value',
            hint = 'Let at least no time pass, and at most 36500 days.';
    end if;
    if false then
        -- What is locked here is passed over by whoever leases along a lane, and what is behind it must not come first.
        perform from trunkline."lane_emails" h where h.lane < 0 order by h.lane for update;
    end if;
    with held as materialized (
        select q.id, q.due_at from trunkline."queue_emails" q order by q.id for update
    ), line as (
        select h.id, h.due_at,
               dense_rank() over (partition by h.due_at > began and h.due_at - passed <= began order by h.due_at) as place
        from held h
    ), moved as (
        update trunkline."queue_emails" q
        set enqueued_at = q.enqueued_at - passed, 
            due_at = case when l.due_at <= began then l.due_at
                          else greatest(l.due_at - passed, began + l.place * interval '1 microsecond') end
        from line l where q.id = l.id
        returning q.size
    )
    select coalesce(sum(m.size), 0) into messages from moved m;
    update trunkline."dead_emails" d set enqueued_at = d.enqueued_at - passed, dead_at = d.dead_at - passed;
    update trunkline."archive_emails" a set enqueued_at = a.enqueued_at - passed, archived_at = a.archived_at - passed;
    null;
    null;
    return messages;
end ;

function do_split_emails(row_id bigint, cuts integer[], lined text[] DEFAULT '{}'::text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
declare
    r trunkline."queue_emails"%rowtype;
    whole jsonb[];
    whole_metadata jsonb[];
    whole_keys text[];
    whole_line text;
    whole_size int;
    ends int[];
    pieces trunkline."queue_emails"[] := '{}';
    start int := 0;
    stop int;
    computed bool := exists (select from pg_attribute a where a.attrelid = 'trunkline."queue_emails"'::regclass and a.attnum > 0
                             and not a.attisdropped and (a.attgenerated <> '' or a.attidentity <> ''));
    written text;
begin
    select * into r from trunkline."queue_emails" q where q.id = row_id;
    whole := r.payload;
    whole_metadata := r.metadata;
    
    whole_size := r.size;
    if r.error is null and (array_ndims(whole) is distinct from 1 or array_lower(whole, 1) <> 1 or cardinality(whole) <> whole_size
                            or num_nulls(variadic whole) > 0) then
        -- It came past trunkline.refuse_row, which lets its parts in with an error only. Whoever reads them has them charged.
        r.error := 'part of a row that is no batch';
    end if;
    select array_agg(distinct c order by c) into ends from (
        select unnest(cuts) union all
        select generate_series(1, 32) * ((whole_size + 31) / 32) union all
        select whole_size) x(c)
    where c > 0 and c <= whole_size;
    foreach stop in array ends loop
        r.size := stop - start;
        r.payload := whole[start + 1 : stop];
        r.metadata := whole_metadata[start + 1 : stop];
        
        if num_nonnulls(variadic r.metadata) = 0 then
            r.metadata := null;
        end if;
        if start = 0 then
            update trunkline."queue_emails" q set size = r.size, payload = r.payload, metadata = r.metadata, error = r.error where q.id = row_id;
        else
            r.id := row_id + start;
            pieces := pieces || r;
        end if;
        -- A statement for each piece would cost more than the piece; but an array of all would hold a large row twice.
        if cardinality(pieces) = 64 or stop = whole_size and cardinality(pieces) > 0 then
            if computed then
                -- A column of the user's that Postgres fills takes no value, not even its own.
                written := coalesce(written, (
                    select string_agg(quote_ident(a.attname), ', ' order by a.attnum) from pg_attribute a
                    where a.attrelid = 'trunkline."queue_emails"'::regclass and a.attnum > 0 and not a.attisdropped
                      and a.attgenerated = '' and a.attidentity = ''));
                execute format('insert into trunkline.%I (%s) select %s from unnest($1) p', 'queue_' || 'emails', written, written)
                    using pieces;
            else
                insert into trunkline."queue_emails" select p.* from unnest(pieces) p;
            end if;
            pieces := '{}';
        end if;
        start := stop;
    end loop;
end ;

function do_stray_emails(floor timestamp with time zone, low tid, high tid) returns timestamp with time zone language plpgsql stable set search_path=pg_catalog, pg_temp enable_seqscan=off enable_indexscan=off enable_indexonlyscan=off enable_bitmapscan=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
begin
    if false then
        return (select min(q.due_at) from trunkline."queue_emails" q where q.ctid >= low and q.ctid < high and q.due_at < floor[q.lane + 1]);
    end if;
    return (select min(q.due_at) from trunkline."queue_emails" q where q.ctid >= low and q.ctid < high and q.due_at < floor);
end ;

function do_sweep_emails(floor timestamp with time zone, page bigint) returns TABLE(stray timestamp with time zone, next_page bigint, cost double precision) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    pages constant int := 64;
    began timestamptz := clock_timestamp();
begin
    if coalesce(page, 0) = 0 and pg_stat_get_dead_tuples('trunkline."queue_emails"'::regclass) < 5000 then
        if false then
            stray := (select min(o.due_at) from generate_series(0, 1 - 1) l(lane),
                             lateral (select q.due_at from trunkline."queue_emails" q where q.lane = l.lane order by q.due_at, q.id + 0 limit 1) o
                      where o.due_at < floor[l.lane + 1]);
        else
            select q.due_at into stray from trunkline."queue_emails" q order by q.due_at, q.id + 0 limit 1;
            stray := case when stray < floor then stray end;
        end if;
        next_page := 0;
        if false then
            perform trunkline."do_lower_emails"(null, null);
        end if;
    else
        page := coalesce(page, (floor(random() * (pg_relation_size('trunkline."queue_emails"'::regclass)
                                                  / current_setting('block_size')::bigint) / pages) * pages)::bigint);
        stray := trunkline."do_stray_emails"(floor, format('(%s,0)', page)::tid, format('(%s,0)', page + pages)::tid);
        if false then
            perform trunkline."do_lower_emails"(format('(%s,0)', page)::tid, format('(%s,0)', page + pages)::tid);
        end if;
        next_page := case when (page + pages) * current_setting('block_size')::bigint
                               < pg_relation_size('trunkline."queue_emails"'::regclass) then page + pages else 0 end;
    end if;
    cost := extract(epoch from clock_timestamp() - began);
    return next;
end ;

function do_take_emails(n integer, floor timestamp with time zone DEFAULT '-infinity'::timestamp with time zone, rows integer DEFAULT 1, cut boolean DEFAULT true, keep boolean DEFAULT false) returns TABLE(id bigint, attempt integer, size integer, enqueued_at timestamp with time zone, payload jsonb[], metadata jsonb[], released integer, error text, own jsonb) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    at record;
    due timestamptz;
    until timestamptz := clock_timestamp();
    next_id bigint := 0;
    turn record;
    dues timestamptz[];
    next_ids bigint[];
    by_lane bool := false and (n = 1 or not cut);
    used int := 0;
begin
    
    if false then
        dues := floor;
        next_ids := array_fill(0::bigint, array[1]);
    else
        due := floor;
    end if;
    if false then
        n := trunkline."do_allowed_emails"(n, true);
    end if;
    if cut and n between 1 and rows and not false and not false and not false then
        -- What is usual where messages are few: all that is due fits as it is, and goes by one statement.
        if n = 1 then
            return query
                with head as materialized (
                    select q.ctid as tid, q.size > 1 or q.attempt - q.released >= 10 as awkward
                    from trunkline."queue_emails" q where (q.due_at, q.id + 0) >= (due, 0) and q.due_at <= until
                    order by q.due_at, q.id + 0 limit 1 for update skip locked)
                delete from trunkline."queue_emails" q using head h where q.ctid = h.tid and not h.awkward
                returning q.id, q.attempt, q.size, q.enqueued_at, q.payload, q.metadata, q.released, q.error, case when keep then case when trunkline."do_own_emails"() is not null then trunkline.own(trunkline."do_own_emails"(), q.*) end end;
        else
            return query
                with head as materialized (
                    select q.ctid as tid, q.due_at, q.id, q.size,
                           q.attempt - q.released >= 10 or q.attempt > 0 and q.error is null and q.size > 1 as awkward
                    from trunkline."queue_emails" q where (q.due_at, q.id + 0) >= (due, 0) and q.due_at <= until
                    order by q.due_at, q.id + 0 limit rows for update skip locked
                ), whole as materialized (
                    select sum(h.size) <= n and not bool_or(h.awkward) as fits from head h
                ), gone as (
                    delete from trunkline."queue_emails" q using head h, whole w where w.fits and q.ctid = h.tid
                    returning q.due_at, q.id, q.attempt, q.size, q.enqueued_at, q.payload, q.metadata, q.released, q.error,
                              case when keep then case when trunkline."do_own_emails"() is not null then trunkline.own(trunkline."do_own_emails"(), q.*) end end as own)
                select g.id, g.attempt, g.size, g.enqueued_at, g.payload, g.metadata, g.released, g.error, g.own
                from gone g order by g.due_at, g.id;
        end if;
        if found then
            return;
        end if;
    end if;
    while n > 0 loop
        if false and not by_lane then
            at := trunkline."do_heads_emails"(n, rows, false, floor);
            by_lane := at.more;
        else
            if by_lane then
                turn := trunkline."do_turn_emails"(dues, next_ids);
                exit when turn.lane is null;
                due := dues[turn.lane + 1];
                next_id := next_ids[turn.lane + 1];
            end if;
            if cut then
                at := trunkline."do_gather_emails"(n, rows, true, 0, due, next_id);
            else
                begin
                    at := trunkline."do_gather_emails"(n, rows, false, 0, due, next_id);
                exception when sqlstate 'TL000' then
                    rows := sqlerrm::int;
                    continue when rows > 0;
                    return query select null::bigint, 0, 0, null::timestamptz, null::jsonb[], null::jsonb[], 0, null::text, null::jsonb;
                    return;
                end;
            end if;
            if by_lane then
                -- Where nothing more is there, others hold it, or it is behind the bound.
                dues[turn.lane + 1] := case when at.more then at.due else turn.bound end;
                next_ids[turn.lane + 1] := case when at.more then at.id else 9223372036854775807 end;
            end if;
        end if;
        continue when at.got = 0 and by_lane;
        exit when at.got = 0;
        if cardinality(at.tids) = 1 then
            -- What is usual where messages are few, and needs no order.
            return query
                delete from trunkline."queue_emails" q where q.ctid = at.tids[1]
                returning q.id, q.attempt, q.size, q.enqueued_at, q.payload, q.metadata, q.released, q.error, case when keep then case when trunkline."do_own_emails"() is not null then trunkline.own(trunkline."do_own_emails"(), q.*) end end;
        else
            return query
                with gone as (
                    delete from trunkline."queue_emails" q using unnest(at.tids) with ordinality d(tid, nr)
                    where q.ctid = d.tid
                    returning d.nr, q.id, q.attempt, q.size, q.enqueued_at, q.payload, q.metadata, q.released, q.error,
                              case when keep then case when trunkline."do_own_emails"() is not null then trunkline.own(trunkline."do_own_emails"(), q.*) end end as own)
                select g.id, g.attempt, g.size, g.enqueued_at, g.payload, g.metadata, g.released, g.error, g.own from gone g order by g.nr;
        end if;
        used := used + at.got;
        exit when not at.more and not by_lane;
        n := n - at.got;
        rows := least(n, 1 + n::bigint * cardinality(at.tids) / at.got);
        due := at.due;
        next_id := at.id;
    end loop;
    if false then
        perform trunkline."do_used_emails"(used);
    end if;
end ;

function do_turn_emails(dues timestamp with time zone[], ids bigint[], OUT lane integer, OUT bound timestamp with time zone) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
    head_start constant interval := '00:01:00'::interval;
    head record;
    rank timestamptz;
    second timestamptz;
begin
    for head in
        select l.nr, o.due_at - l.nr * head_start as rank
        from generate_series(1 - 1, 0, -1) l(nr),
             lateral (select q.due_at from trunkline."queue_emails" q
                      where q.lane = l.nr and (q.due_at, q.id + 0) >= (dues[l.nr + 1], ids[l.nr + 1]) and q.due_at <= clock
                      order by q.due_at, q.id + 0 limit 1) o
    loop
        if rank is null or head.rank < rank then
            second := rank;
            rank := head.rank;
            lane := head.nr;
        else
            second := least(second, head.rank);
        end if;
    end loop;
    bound := least(clock, second + lane * head_start + head_start / 16);
end ;

function do_used_emails(n integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    if null::float8 is not null and n > 0 then
        update trunkline.bucket b
        set tokens = least(null::float8, greatest(b.tokens, 0) + null::float8 * extract(epoch from clock - greatest(least(b.filled_at, clock), 'epoch'))) - n, filled_at = clock
        where b.queue = 'emails';
    end if;
end ;

function do_want_emails(n integer, share integer, holder bigint, until timestamp with time zone) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
    most record;
begin
    select o.holder, count(*) as lanes, count(*) filter (where o.wanted_until > clock) as wanted into most from trunkline."lane_emails" o
    where o.held_until > clock and o.holder <> holder group by o.holder order by 2 desc limit 1;
    n := least(n, most.lanes - most.wanted - share);
    if n > 0 then
        update trunkline."lane_emails" h set wanted_until = until
        from (select w.lane from trunkline."lane_emails" w
              where w.holder = most.holder and w.held_until > clock and w.wanted_until <= clock
              order by w.served_at limit n for update skip locked) w
        where h.lane = w.lane;
    end if;
end ;

function do_within_emails(first_id bigint, last_id bigint, due_from timestamp with time zone, due_before timestamp with time zone) returns TABLE(id bigint, enqueued_at timestamp with time zone, due_at timestamp with time zone, attempt integer, error text, payload jsonb, metadata jsonb, priority integer, key text) language plpgsql stable set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
begin
    if first_id > 0 or last_id < 9223372036854775807 then
        return query
            select q.id + m.k, q.enqueued_at, q.due_at, q.attempt, q.error, m.payload, m.metadata, 0, null::text
            from trunkline."queue_emails" q,
                 lateral (select generate_series(0, q.size - 1) as k, unnest(q.payload) as payload, unnest(q.metadata) as metadata) m
            where q.id >= first_id / 1024 * 1024 and q.id <= last_id and q.id + m.k between first_id and last_id
              and q.due_at + interval '0' >= due_from and q.due_at + interval '0' < due_before; -- not along the due times
    else
        return query
            select m.id, m.enqueued_at, m.due_at, m.attempt, m.error, m.payload, m.metadata, m.priority, m.key
            from trunkline."messages_emails" m where m.due_at >= due_from and m.due_at < due_before;
    end if;
end ;

function drop_queue(queue text, cascade boolean DEFAULT false) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp lock_timeout=10s client_min_messages=warning as 
declare
    routine regprocedure;
    next_id bigint;
    along text := case when cascade then ' cascade' else '' end;
    others text;
begin
    perform trunkline.lock_queue(queue);
    perform trunkline.check_queue(queue);
    begin
        execute format('lock table trunkline.%I in access exclusive mode', 'queue_' || queue);
    exception when lock_not_available then
        -- Whoever waits for this lock makes everybody wait who comes after.
        raise exception 'queue % is in use', quote_literal(queue) using errcode = 'lock_not_available',
            hint = 'A transaction that touched it has been open for ten seconds. End it (see pg_stat_activity), then try again.';
    end;
    next_id := trunkline.repair_sequence(queue);
    insert into trunkline.dropped as d (queue, next_id) values (drop_queue.queue, next_id)
    on conflict on constraint pk_dropped do update set next_id = excluded.next_id;
    begin
        execute format('drop trigger if exists free_keys on trunkline.%I', 'queue_' || queue);
        execute format('drop trigger if exists free_all_keys on trunkline.%I', 'queue_' || queue);
        for routine in
            select p.oid from pg_proc p join trunkline.template t on p.proname = 'do_' || t.name || '_' || queue
            where t.kind = 'function'
              and p.pronamespace = (select c.relnamespace from pg_class c where c.oid = 'trunkline.queue'::regclass)
        loop
            execute format('drop function %s%s', routine, along);
        end loop;
        execute format('drop view trunkline.%I%s', 'messages_' || queue, along);
        execute format('drop table trunkline.%I, trunkline.%I, trunkline.%I%s', 'queue_' || queue, 'dead_' || queue, 'archive_' || queue, along);
        execute format('drop table if exists trunkline.%I, trunkline.%I%s', 'unique_' || queue, 'limit_' || queue, along);
        execute format('drop table if exists trunkline.%I, trunkline.%I%s', 'lane_' || queue, 'line_' || queue, along);
        execute format('drop domain if exists trunkline.%I%s', 'payload_' || queue, along);
    exception when dependent_objects_still_exist then
        get stacked diagnostics others = pg_exception_detail;
        raise exception 'something of others depends on queue %', quote_literal(queue) using errcode = 'dependent_objects_still_exist', detail = others,
            hint = 'Drop that first; or call trunkline.drop_queue(queue, cascade => true), which drops it, too.';
    end;
    delete from trunkline.floor f where f.queue = drop_queue.queue;
    delete from trunkline.granted g where g.queue = drop_queue.queue;
    delete from trunkline.queue q where q.name = drop_queue.queue;
    perform pg_notify('trunkline.' || queue, ''); -- so that sleepers learn of it
end ;

function drop_schedule(name text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
begin
    delete from trunkline.schedule s where s.name = name;
    perform trunkline.found_schedule(name, found);
end ;

function due_from(seconds double precision) returns timestamp with time zone language sql volatile as RETURN CASE WHEN (seconds >= (0)::double precision) THEN (clock() + (seconds * '00:00:01'::interval)) ELSE GREATEST(clock(), to_timestamp((- seconds))) END;

function due_of(delay interval) returns double precision language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    if delay is null or delay < '0' or delay > '36500 days' then
        raise exception 'a delay of % is out of bounds', coalesce(delay::text, 'null') using errcode = 'invalid_parameter_value',
            hint = 'A delay is at least zero and at most 36500 days.';
    end if;
    return case when delay = '0' then 0 else -extract(epoch from clock_timestamp() + delay) end;
end ;

function enqueue(queue text, payload anyelement, delay interval DEFAULT '00:00:00'::interval, metadata jsonb DEFAULT NULL::jsonb, priority integer DEFAULT 0, unique_key text DEFAULT NULL::text, unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, key text DEFAULT NULL::text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
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
end ;

function enqueue(queue text, payload text, delay interval DEFAULT '00:00:00'::interval, metadata jsonb DEFAULT NULL::jsonb, priority integer DEFAULT 0, unique_key text DEFAULT NULL::text, unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, key text DEFAULT NULL::text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
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
end ;

function enqueue_many(queue text, payloads anyarray, delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], priority integer DEFAULT 0, unique_keys text[] DEFAULT NULL::text[], unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, keys text[] DEFAULT NULL::text[]) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    if unique_keys is not null then
        return query select u.id from trunkline.enqueue_unique_many(queue, payloads, unique_keys, unique_for, replace, delay, metadata, priority) u;
        return;
    end if;
    perform trunkline.check_queue(queue);
    if array_ndims(payloads) > 1 then
        raise exception 'the payloads are an array of % dimensions', array_ndims(payloads)
            using errcode = 'array_subscript_error',
                  hint = 'Pass one dimension. Payloads that are arrays themselves are passed as texts: array[''{1,2}'', ''{3}''].';
    end if;
    if keys is not null then
        perform trunkline.check_keys(queue, keys, cardinality(payloads));
        return query execute format('select * from trunkline.%I($1::%s[], $2, $3, $4)', 'do_keyed_' || queue, format_type(trunkline.payload_type(queue), -1))
            using payloads, keys, delay, metadata;
        return;
    end if;
    return query execute format('select * from trunkline.%I($1::%s[], $2, $3%s)', 'do_batch_' || queue, format_type(trunkline.payload_type(queue), -1),
                                trunkline.check_priority(queue, priority))
        using payloads, delay, metadata;
end ;

function enqueue_many(queue text, payloads text, delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], priority integer DEFAULT 0, unique_keys text[] DEFAULT NULL::text[], unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, keys text[] DEFAULT NULL::text[]) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    return query select * from trunkline.enqueue_many(queue, payloads::text[], delay, metadata, priority, unique_keys, unique_for, replace, keys);
end ;

function enqueue_many(queue text, payloads text[], delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], priority integer DEFAULT 0, unique_keys text[] DEFAULT NULL::text[], unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, keys text[] DEFAULT NULL::text[]) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    if unique_keys is not null then
        return query select u.id from trunkline.enqueue_unique_many(queue, payloads, unique_keys, unique_for, replace, delay, metadata, priority) u;
        return;
    end if;
    perform trunkline.check_queue(queue);
    if array_ndims(payloads) > 1 then
        raise exception 'the payloads are an array of % dimensions', array_ndims(payloads)
            using errcode = 'array_subscript_error', hint = 'Pass one dimension: a text for each payload.';
    end if;
    if keys is not null then
        perform trunkline.check_keys(queue, keys, cardinality(payloads));
        return query execute format('select * from trunkline.%I($1::%s[], $2, $3, $4)', 'do_keyed_' || queue, format_type(trunkline.payload_type(queue), -1))
            using payloads, keys, delay, metadata;
        return;
    end if;
    return query execute format('select * from trunkline.%I($1::%s[], $2, $3%s)', 'do_batch_' || queue, format_type(trunkline.payload_type(queue), -1),
                                trunkline.check_priority(queue, priority))
        using payloads, delay, metadata;
end ;

function enqueue_unique(queue text, payload anyelement, unique_key text, unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, delay interval DEFAULT '00:00:00'::interval, metadata jsonb DEFAULT NULL::jsonb, priority integer DEFAULT 0, OUT id bigint, OUT outcome text) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.check_queue(queue);
    perform trunkline.check_priority(queue, priority), trunkline.check_unique(queue, 1, array[metadata], array[unique_key], unique_for);
    execute format('select u.id, (array[''new'', ''duplicate'', ''replaced''])[u.outcome + 1]
                    from trunkline.%I(array[$1::%s], array[$2], array[$3], array[$4], array[$5], array[$6], array[$7]) u',
                   'do_unique_' || queue, format_type(trunkline.payload_type(queue), -1))
        into id, outcome
        using payload, trunkline.due_of(delay), metadata, priority, unique_key, extract(epoch from unique_for)::float8, coalesce(replace, false);
end ;

function enqueue_unique(queue text, payload text, unique_key text, unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, delay interval DEFAULT '00:00:00'::interval, metadata jsonb DEFAULT NULL::jsonb, priority integer DEFAULT 0, OUT id bigint, OUT outcome text) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.check_queue(queue);
    perform trunkline.check_priority(queue, priority), trunkline.check_unique(queue, 1, array[metadata], array[unique_key], unique_for);
    execute format('select u.id, (array[''new'', ''duplicate'', ''replaced''])[u.outcome + 1]
                    from trunkline.%I(array[$1::%s], array[$2], array[$3], array[$4], array[$5], array[$6], array[$7]) u',
                   'do_unique_' || queue, format_type(trunkline.payload_type(queue), -1))
        into id, outcome
        using payload, trunkline.due_of(delay), metadata, priority, unique_key, extract(epoch from unique_for)::float8, coalesce(replace, false);
end ;

function enqueue_unique_many(queue text, payloads anyarray, unique_keys text[], unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], priority integer DEFAULT 0) returns TABLE(id bigint, outcome text) language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.check_queue(queue);
    if array_ndims(payloads) > 1 then
        raise exception 'the payloads are an array of % dimensions', array_ndims(payloads)
            using errcode = 'array_subscript_error',
                  hint = 'Pass one dimension. Payloads that are arrays themselves are passed as texts: array[''{1,2}'', ''{3}''].';
    end if;
    perform trunkline.check_priority(queue, priority), trunkline.check_unique(queue, cardinality(payloads), metadata, unique_keys, unique_for);
    return query execute format(
        'select u.id, (array[''new'', ''duplicate'', ''replaced''])[u.outcome + 1]
         from (select array[cardinality($1)] as n) a,
              trunkline.%I($1::%s[], array_fill($2, a.n), $3, array_fill($4, a.n), $5, array_fill($6, a.n), array_fill($7, a.n)) u',
        'do_unique_' || queue, format_type(trunkline.payload_type(queue), -1))
        using payloads, trunkline.due_of(delay), metadata, priority, unique_keys, extract(epoch from unique_for)::float8, coalesce(replace, false);
end ;

function enqueue_unique_many(queue text, payloads text[], unique_keys text[], unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], priority integer DEFAULT 0) returns TABLE(id bigint, outcome text) language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.check_queue(queue);
    if array_ndims(payloads) > 1 then
        raise exception 'the payloads are an array of % dimensions', array_ndims(payloads)
            using errcode = 'array_subscript_error',
                  hint = 'Pass one dimension: a text for each payload.';
    end if;
    perform trunkline.check_priority(queue, priority), trunkline.check_unique(queue, cardinality(payloads), metadata, unique_keys, unique_for);
    return query execute format(
        'select u.id, (array[''new'', ''duplicate'', ''replaced''])[u.outcome + 1]
         from (select array[cardinality($1)] as n) a,
              trunkline.%I($1::%s[], array_fill($2, a.n), $3, array_fill($4, a.n), $5, array_fill($6, a.n), array_fill($7, a.n)) u',
        'do_unique_' || queue, format_type(trunkline.payload_type(queue), -1))
        using payloads, trunkline.due_of(delay), metadata, priority, unique_keys, extract(epoch from unique_for)::float8, coalesce(replace, false);
end ;

function epoch_of(at timestamp with time zone) returns bigint language plpgsql immutable set search_path=pg_catalog, pg_temp as 
begin
    return case when isfinite(at) then (extract(epoch from at) * 1000000)::bigint else '-9223372036854775808' end;
end ;

function extend(queue text, id bigint, attempt integer, lease interval) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.check_lease(lease);
    perform trunkline.settle('extend', queue, array[id], array[attempt], lease);
end ;

function extend_many(queue text, ids bigint[], attempts integer[], lease interval) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.check_lease(lease);
    perform trunkline.settle('extend', queue, ids, attempts, lease);
end ;

function fail_schedule(name text, tick timestamp with time zone, next timestamp with time zone, problem text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    update trunkline.schedule s
    set owed_at = case when next is null then tick end, problem = problem, placed = true, placed_at = clock,
        next_at = coalesce(next, clock + least(greatest(clock - tick, interval '1 second'), interval '5 minutes'))
    where s.name = name and s.placed and coalesce(s.owed_at, s.next_at) = tick;
end ;

function fill(template text, queue text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp standard_conforming_strings=on as 
declare
    settings trunkline.queue;
    type regtype := trunkline.payload_type(queue);
    laned bool;
    keyed bool;
    due_rows text;
    heads text;
begin
    select * into strict settings from trunkline.queue q where q.name = queue;
    laned := settings.priorities > 1;
    keyed := settings.lanes > 0;
    -- Plans that need no statistics: always the index, never the table from end to end.
    template := replace(template, '{planner}',
        'set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off '
        'set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan');
    -- Without -1, bpchar would be "character", which is one character, and bit one bit.
    template := replace(template, '{type}', coalesce(format_type(type, -1), ''));
    -- array_agg would flatten arrays, even under a domain.
    template := replace(template, '{payloads}', case when trunkline.is_array(type)
        then 'payloads[min(p.nr):max(p.nr)]' else 'array_agg(p.payload order by p.nr)' end);
    template := replace(template, '{own}', case when laned or keyed
        then 'coalesce(case when trunkline.{do_own_}() is not null then trunkline.own(trunkline.{do_own_}(), q.*) end, ''{}'') '
             '|| jsonb_build_object(''lane'', q.lane::text' || case when keyed then ', ''keys'', q.keys' else '' end || ')'
        else 'case when trunkline.{do_own_}() is not null then trunkline.own(trunkline.{do_own_}(), q.*) end' end);
    -- A queue with keys has columns more, and reads along lines of lanes, by places that leases leave as they are.
    template := replace(template, '{own_g}', case when keyed
        then 'g.own || jsonb_build_object(''keys'', array[g.own -> ''keys'' ->> m.k]::text)' else 'g.own' end);
    template := replace(template, '{own_h}', case when keyed
        then 'h.own || jsonb_build_object(''keys'', array[h.own -> ''keys'' ->> m.k]::text)' else 'h.own' end);
    template := replace(template, '{keyed}', keyed::text);
    -- With a rate for each key, as much is leased of one at a time as half a bucket and what fills it meanwhile, and a lane tells since when its buckets fill.
    template := replace(template, '{key_rate}', case when settings.key_per_second is not null
        then '(select array[1 / {key_per_second}, {key_burst} / {key_per_second}, case when isfinite(h.empty_at) '
             'then greatest(extract(epoch from h.empty_at - clock_timestamp())::float8 + {key_burst} / {key_per_second}, 0) else 0 end] '
             'from trunkline.{lane_} h where h.lane = e.lane)' else 'null::float8[]' end);
    -- Whether anything is due in a lane: by the range, because an equality would be hashed, for all lanes at once.
    template := replace(template, '{lane_due}',
        '(exists (select from trunkline.{queue_} q where q.lane = h.lane and q.line = '''' and (q.place, q.id + 0) >= (h.floor, 0) '
        'and q.place <= clock and q.due_at <= clock) '
        'or exists (select from trunkline.{line_} w where w.lane >= h.lane and w.lane <= h.lane and w.until <= clock))');
    template := replace(template, '{most_of_key}', case when settings.key_per_second is not null
        then ', greatest(least(ceil({key_burst} / 2 + {key_per_second} * extract(epoch from {lease}) / 16), 64), 1)::int' else '' end);
    template := replace(template, '{next_line}', case when settings.key_per_second is not null
        then '(select min(w.until) from trunkline.{lane_} h join trunkline.{line_} w on w.lane = h.lane '
             'where h.holder = holder and h.held_until > clock and w.until > clock),' else '' end);
    -- Until as many as a worker holds of a key, and what fits into its bucket, may have begun; else a worker lets it rest for a moment.
    template := replace(template, '{longest_rest}', case when settings.key_per_second is not null
        then 'least((64 + {key_burst}) / {key_per_second}, 31536000) * interval ''1 second''' else 'interval ''1 second''' end);
    template := replace(template, '{key_per_second}', coalesce(settings.key_per_second::text, 'null') || '::float8');
    template := replace(template, '{key_burst}', coalesce(settings.key_burst::text, 'null') || '::float8');
    template := replace(template, '{row_key}', case when keyed then 'q.keys[m.k + 1]' else 'null::text' end);
    template := replace(template, '{found_key}', case when keyed then 'q.keys[(message - q.id)::int + 1]' else 'null::text' end);
    template := replace(template, '{own_key}', case when keyed then '((q.own ->> ''keys'')::text[])[1]' else 'null::text' end);
    -- The rows that are due, locked. Along a lane none is passed over, because what is behind it may have its key: as many are looked at as are locked.
    due_rows := 'trunkline.{queue_} q where {in_lane}({place}, q.id + 0) >= (due, id) and {place} <= until{and_due} '
                'order by {place}, q.id + 0 limit rows';
    heads := 'head as materialized (select q.ctid as tid, q.due_at, q.attempt, q.size, q.line from ' || due_rows || ')';
    template := replace(template, '{with_head}', case when keyed then 'with ' || heads else '' end);
    template := replace(template, '{head}', case when keyed then heads || ',' else '' end);
    template := replace(template, '{heads}', case when keyed then '(select count(*)::int from head)' else 'count(*)::int' end);
    template := replace(template, '{due_rows}', case when keyed
        then 'head h join trunkline.{queue_} q on q.ctid = h.tid '
             'where q.due_at = h.due_at and q.attempt = h.attempt and q.size = h.size and q.line = h.line for update of q skip locked'
        else due_rows || ' for update skip locked' end);
    template := replace(template, '{ordered}', (keyed and settings.per_key = 1)::text);
    template := replace(template, '{key_lanes}', settings.lanes::text);
    template := replace(template, '{first_lane}', settings.first_lane::text);
    template := replace(template, '{place}', case when keyed then 'q.place' else 'q.due_at' end);
    template := replace(template, '{and_due}', case when keyed then ' and q.due_at <= until and q.place <= bound' else '' end);
    -- One that ran out once may be innocent; as long as it has an attempt for itself behind that, it needs none for itself now.
    template := replace(template, '{alone}', case when keyed
        then '(apart > 0 and (apart < 3 or q.attempt - q.released > 1 or {max_attempts} < 3))' else '(apart > 0)' end);
    template := replace(template, '{mixed}', case when keyed then 'of_line = '''' and q.keys && lined' else 'false' end);
    template := replace(template, '{or_mixed}', case when keyed then ' or of_line = '''' and q.keys && lined' else '' end);
    template := replace(template, '{and_pure}', case when keyed then ' and not (of_line = '''' and q.keys && lined)' else '' end);
    template := replace(template, '{whole_keys}', case when keyed then 'whole_keys := r.keys; whole_line := r.line;' else '' end);
    template := replace(template, '{keys}', case when keyed then 'r.keys := whole_keys[start + 1 : stop]; r.line := case when r.keys[1] = any (lined) then r.keys[1] else whole_line end;' else '' end);
    template := replace(template, '{set_keys}', case when keyed then ', keys = r.keys, line = r.line' else '' end);
    template := replace(template, '{then_place}', case when keyed
        then ' place = case when due > clock_timestamp() then due else q.place end,' else '' end);
    template := replace(template, '{right_place}', case when keyed
        then ', place = case when q.enqueued_at > clock and q.place > clock then greatest(q.place - (q.enqueued_at - clock), clock) else q.place end' else '' end);
    template := replace(template, '{shift_place}', case when keyed
        then 'place = case when q.place <= began then q.place else greatest(l.due_at - passed, began + l.place * interval ''1 microsecond'') end,' else '' end);
    template := replace(template, '{shift_lines}', case when keyed
        then 'with lines as (update trunkline.{line_} l set until = l.until - passed where isfinite(l.until)) '
             'update trunkline.{lane_} h set held_until = h.held_until - passed, starts_until = h.starts_until - passed, empty_at = h.empty_at - passed' else 'null' end);
    template := replace(template, '{refuse_keys}', case when keyed then format('perform trunkline.refuse_keys(%L);', queue) else '' end);
    template := replace(template, '{lane_columns}', case
        when keyed then 'array[''lane'', ''line'', ''place'', ''keys'']' when laned then 'array[''lane'']' else 'array[]' end);
    -- A queue with priorities has a column more, and a floor for each lane.
    template := replace(template, '{last_lane}', (settings.priorities - 1)::text);
    template := replace(template, '{of_lane}', case when laned then 'q.lane = l.lane and ' else '' end);
    template := replace(template, '{laned}', laned::text);
    template := replace(template, '{lanes}', settings.priorities::text);
    template := replace(template, '{head_start}', format('%L::interval', settings.head_start));
    template := replace(template, '{floors}', case when laned then 'timestamptz[]' else 'timestamptz' end);
    template := replace(template, '{no_floor}', case when laned
        then format('array_fill(''-infinity''::timestamptz, array[%s])', settings.priorities) else '''-infinity''' end);
    template := replace(template, '{lane}', case when laned then ', lane int, bound timestamptz'
                                                 when keyed then ', lane int, of_line text, lined text[], bound timestamptz' else '' end);
    template := replace(template, '{turn}', case when laned then ', turn.lane, turn.bound' else '' end);
    template := replace(template, '{in_lane}', case when laned then 'q.lane = lane and '
                                                    when keyed then 'q.lane = lane and q.line = of_line and ' else '' end);
    template := replace(template, '{bound}', case when laned then 'least(clock_timestamp(), bound)' else 'clock_timestamp()' end);
    template := replace(template, '{batch_priority}', case when laned then ', priority int default 0' else '' end);
    template := replace(template, '{lane_column}', case when laned then ', lane' else '' end);
    template := replace(template, '{priority}', case when laned then ', priority' else '' end);
    -- One with uniqueness has a table more.
    template := replace(template, '{passed_keys}', case when settings.uniqueness
        then 'update trunkline.{unique_} u set until = u.until - passed, claimed_at = u.claimed_at - passed where u.until is not null' else 'null' end);
    template := replace(template, '{right_keys}', case when settings.uniqueness
        then 'update trunkline.{unique_} u set until = clock + (u.until - u.claimed_at), claimed_at = clock where u.key = any (array('
             'select a.key from trunkline.{unique_} a where a.claimed_at > clock for update skip locked))' else 'null' end);
    template := replace(template, '{row_priority}', case when laned then 'q.lane::int' else '0' end);
    template := replace(template, '{own_priority}', case when laned then 'coalesce((q.own ->> ''lane'')::int, 0)' else '0' end);
    template := replace(template, '{literal}', quote_literal(queue));
    template := replace(template, '{channel}', quote_literal('trunkline.' || queue));
    -- What is in the bucket now. A time of the future was written by a clock that was ahead; a bucket that a hand has made absurd is one that is empty or full.
    template := replace(template, '{tokens}', 'least({burst}, greatest(b.tokens, 0) '
        '+ {per_second} * extract(epoch from clock - greatest(least(b.filled_at, clock), ''epoch'')))');
    template := replace(template, '{paused}', settings.paused::text);
    template := replace(template, '{limited}', (coalesce(settings.max_leased, settings.per_second) is not null)::text);
    template := replace(template, '{max_leased}', coalesce(settings.max_leased::text, 'null::int'));
    template := replace(template, '{per_second}', coalesce(settings.per_second::text, 'null') || '::float8');
    template := replace(template, '{burst}', coalesce(settings.burst::text, 'null') || '::float8');
    template := replace(template, '{max_attempts}', settings.max_attempts::text);
    template := replace(template, '{max_batch}', settings.max_batch::text);
    template := replace(template, '{lease}', format('%L::interval', settings.lease));
    return regexp_replace(template, '[{]([a-z_]+_)[}]', '"\1' || queue || '"', 'g');
end ;

function find(queue text, id bigint) returns TABLE(state text, attempt integer, due_at timestamp with time zone, ended_at timestamp with time zone, enqueued_at timestamp with time zone, error text, payload text, metadata jsonb, priority integer, key text) language plpgsql stable set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.check_queue(queue);
    return query execute format(
        'select f.state, f.attempt, f.due_at, f.ended_at, f.enqueued_at, f.error, f.payload::text, f.metadata, f.priority, f.key from trunkline.%I($1) f',
        'do_find_' || queue) using id;
end ;

function fire_schedule(name text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
declare
    place tid;
    id bigint;
begin
    select s.ctid into place from trunkline.schedule s where s.name = name for update;
    perform trunkline.found_schedule(name, found);
    select t.id into id from trunkline.tick(array[place], array[clock_timestamp()]) t(id);
    return id;
end ;

function floor(queue text, keep boolean DEFAULT true) returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off as 
declare
    setting text := format('trunkline.floor_%s', to_regclass(format('trunkline.%I', 'queue_' || queue))::oid);
    known bigint[] := nullif(current_setting(setting, true), '')::bigint[];
    clock bigint := trunkline.epoch_of(clock_timestamp());
    reached timestamptz;
    seen record;
    swept record;
begin
    if known is null then
        reached := trunkline.kept_floor(queue);
    else
        reached := trunkline.time_of(known[1]);
        if clock >= known[4] and clock < known[4] + 100000 then
            return reached;
        elsif clock < known[4] then
            reached := least(reached, now() - interval '1 s'); -- the clock stepped back
            known := null;
        end if;
    end if;
    execute format('select min(l.oldest) as oldest, min(l.candidate) as candidate, min(l.running) as running, max(l.next) as next
                    from trunkline.%I(%s) l', 'do_look_' || queue, trunkline.in_lanes(queue, '$1')) into seen using reached;
    if known is null then
        known := array[0, trunkline.epoch_of(seen.candidate), seen.next, 0, 0];
    else
        if seen.running >= known[3] then
            reached := greatest(reached, least(trunkline.time_of(known[2]), seen.oldest));
            known := array[0, trunkline.epoch_of(seen.candidate), seen.next, 0, known[5]];
            if keep then
                perform trunkline.keep_floor(queue, reached);
            end if;
        end if;
        execute format('select * from trunkline.%I(%s, $2)', 'do_sweep_' || queue, trunkline.in_lanes(queue, '$1')) into swept using reached, known[5];
        reached := least(reached, swept.stray);
        known[5] := swept.next_page;
    end if;
    known[1] := trunkline.epoch_of(reached);
    known[4] := clock;
    perform set_config(setting, known::text, false);
    return reached;
end ;

function forget_relays() returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    count bigint;
begin
    delete from trunkline.relay r
    where (r.queue, r.name) in (
        select o.queue, o.name from trunkline.relay o
        where not o.inward and o.seen_at < clock_timestamp() - interval '1 day' limit 1000 for update skip locked);
    get diagnostics count = row_count;
    return count;
end ;

function forget_workers() returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    count bigint;
begin
    delete from trunkline.worker w
    where w.ctid = any (array(
        select o.ctid from trunkline.worker o where o.at < now() - interval '1 hour' order by o.at limit 1000 for update skip locked));
    get diagnostics count = row_count;
    return count;
end ;

function found_schedule(name text, was_found boolean) returns void language plpgsql stable set search_path=pg_catalog, pg_temp as 
begin
    if not was_found then
        raise exception 'there is no schedule %', coalesce(quote_literal(name), 'NULL') using errcode = 'undefined_object',
            hint = 'They are listed by: select name from trunkline.schedule. Make one with trunkline.set_schedule.';
    end if;
end ;

function grant_rights(role regrole, kind text, queue text DEFAULT NULL::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    name text := trunkline.check_role(role);
begin
    if kind is null or kind not in ('producer', 'consumer', 'operator') then
        raise exception 'there are no rights of a %', coalesce(kind, 'null')
            using errcode = 'invalid_parameter_value', hint = 'Pass producer, consumer or operator.';
    end if;
    lock table trunkline.migration in share row exclusive mode; -- see trunkline.lock_queue
    if queue is not null then
        perform trunkline.check_queue(queue);
    end if;
    insert into trunkline.granted (role, kind, queue) values (name, grant_rights.kind, coalesce(queue, '')) on conflict do nothing;
    perform trunkline.apply_rights(q.name) from trunkline.queue q where q.name = queue or queue is null;
    perform trunkline.apply_shared_rights();
end ;

function hand_over(queue text, element bytea, metadata jsonb DEFAULT NULL::jsonb) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off as 
declare
    text_of text := translate(encode(element, 'base64'), chr(10), '')
        || coalesce(' ' || translate(encode(convert_to(metadata::text, 'UTF8'), 'base64'), chr(10), ''), '');
    waiting record;
    id bigint;
begin
    perform trunkline.check_queue(queue), trunkline.check_metadata(metadata);
    if length(text_of) > 7900 or exists (
            select from trunkline.queue q
            where q.name = queue and (q.paused or coalesce(q.max_leased, q.per_second) is not null)) then
        return null;
    end if;
    loop
        select w.consumer, w.alive into waiting from trunkline.waiting w where w.queue = hand_over.queue limit 1 for update skip locked;
        if not found then
            return null;
        end if;
        perform trunkline.wait_no_more(waiting.consumer);
        continue when pg_try_advisory_xact_lock(waiting.alive); -- it died
        id := nextval(format('trunkline.%I', 'id_' || queue));
        perform pg_notify(waiting.consumer, format('%s %s %s', id, (extract(epoch from clock_timestamp()) * 1000000)::bigint, text_of));
        return id;
    end loop;
end ;

function in_lanes(queue text, parameter text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp as 
begin
    return (select case when q.priorities > 1 then format('array_fill(%s, array[%s])', parameter, q.priorities) else parameter end
            from trunkline.queue q where q.name = queue);
end ;

function install_queue(queue text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp standard_conforming_strings=on check_function_bodies=off as 
declare
    template text;
begin
    perform trunkline.lock_queue(queue);
    -- What names the table of unique keys is of queues that have one.
    for template in
        select t.text from trunkline.template t, trunkline.queue q
        where t.kind <> 'tables' and q.name = queue and (q.uniqueness or t.text not like '%{unique\_}%')
        order by t.kind, t.name
    loop
        execute trunkline.fill(template, queue);
    end loop;
    perform trunkline.apply_rights(queue);
end ;

function is_array(type regtype) returns boolean language plpgsql stable set search_path=pg_catalog, pg_temp as 
begin
    return exists (select from pg_type t where t.oid = trunkline.base_type(type) and t.typelem <> 0
                   and t.typsubscript = 'array_subscript_handler'::regproc);
end ;

function keep_floor(queue text, reached timestamp with time zone) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off as 
declare
    clock timestamptz := clock_timestamp();
    kept timestamptz;
begin
    if current_setting('transaction_isolation') = 'read committed'
       and has_column_privilege('trunkline.floor', 'reached', 'update') and has_column_privilege('trunkline.floor', 'shown', 'update') then
        select greatest(k.reached, k.shown) into kept from trunkline.floor k
        where k.queue = keep_floor.queue
          and (k.reached < keep_floor.reached - interval '10 s' or k.reached > clock or k.shown between clock - interval '10 s' and clock is not true)
        for update skip locked;
        if found then
            update trunkline.floor f set reached = least(keep_floor.reached, clock), shown = clock where f.queue = keep_floor.queue;
            execute format('select trunkline.%I($1, $2)', 'do_right_' || queue)
                using case when kept > clock + interval '1 minute' then 1 else 0 end, case when kept > clock + interval '1 minute' then kept - clock end;
        end if;
    end if;
end ;

function keep_letter() returns trigger language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off as 
declare
    queue text := substr(tg_table_name, strpos(tg_table_name, '_') + 1);
    is_there bool := tg_op = 'UPDATE';
begin
    if tg_table_schema <> rtrim('trunkline.', '.') then
        raise exception '% is no table of a queue', quote_ident(tg_table_name) using errcode = 'insufficient_privilege',
            hint = 'Drop its trigger: trunkline.keep_letter is for the dead letters and the archive of a queue.';
    end if;
    if not is_there then
        execute format('select exists (select from trunkline.%I o where o.id = $1)', tg_table_name) into is_there using new.id;
    end if;
    if is_there then
        perform trunkline.repair_sequence(queue);
        new.id := nextval(format('trunkline.%I', 'id_' || queue));
    end if;
    return new;
end ;

function keep_place() returns trigger language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    first int := tg_argv[0];
    lanes int := tg_argv[1];
    wrong text[];
    is_placed bool;
begin
    new.place := coalesce(new.place, new.due_at);
    if cardinality(new.keys) is distinct from new.size or array_lower(new.keys, 1) <> 1 or array_ndims(new.keys) <> 1 then
        raise exception 'a row of % is no batch: it has % messages, and keys for %, or these are no array of one dimension, from 1 on', tg_table_name, new.size, coalesce(cardinality(new.keys), 0)
            using errcode = 'check_violation', hint = 'Enqueue through trunkline.enqueue or enqueue_many.';
    end if;
    if new.id % 1024 > 0 then
        -- A part of a row that is there, or a message that comes back: a refusal would lose it.
        if new.lane < first or new.lane >= first + lanes then
            new.lane := first + trunkline.lane_of(new.keys[1], lanes);
        end if;
        return new;
    end if;
    if new.size = 1 and octet_length(new.keys[1]) between 1 and 1024 and new.lane = first + trunkline.lane_of(new.keys[1], lanes) then
        return new; -- what is usual where messages are few, without a subquery
    end if;
    wrong := array(select k.key from unnest(new.keys) k(key) where (octet_length(k.key) between 1 and 1024) is not true limit 1);
    if wrong <> '{}' then
        raise exception 'a key of a row of % is empty, null or too long', tg_table_name
            using errcode = 'check_violation', hint = 'A key has 1 to 1,024 bytes. Enqueue through trunkline.enqueue or enqueue_many, which say which.';
    end if;
    -- As trunkline.lane_of, without a call for each key. Messages of one key in several lanes would be handled at the same time.
    if new.lane < first or new.lane >= first + lanes then
        new.lane := first + trunkline.lane_of(new.keys[1], lanes);
        is_placed := true;
    end if;
    if exists (
        select from (select distinct u.key from unnest(new.keys) u(key)) k, lateral (select sha256(convert_to(k.key, 'UTF8')) as bytes offset 0) h
        where first + ((get_byte(h.bytes, 0)::bigint << 24) + (get_byte(h.bytes, 1) << 16) + (get_byte(h.bytes, 2) << 8) + get_byte(h.bytes, 3)) % lanes
              <> new.lane)
    then
        if is_placed is null then
            raise exception 'a row of % is in the partition of another key', tg_table_name
                using errcode = 'check_violation', hint = 'Enqueue through trunkline.enqueue or enqueue_many; a row by hand gets its partition from its key with lane -1.';
        end if;
        raise exception 'a row of % has keys of several lanes: there are % now', tg_table_name, lanes
            using errcode = 'TL002', hint = 'The queue got more lanes meanwhile: call again. Whoever inserts rows by hand calls trunkline.enqueue_many instead.';
    end if;
    return new;
end ;

function kept_floor(queue text) returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    kept timestamptz;
    stray timestamptz;
begin
    select f.reached into kept from trunkline.floor f where f.queue = kept_floor.queue and f.reached <= clock_timestamp();
    if kept > '-infinity' and has_table_privilege(to_regclass(format('trunkline.%I', 'queue_' || queue)), 'select') then
        execute format('select s.stray from trunkline.%I(%s, null) s', 'do_sweep_' || queue, trunkline.in_lanes(queue, '$1')) into stray using kept;
    end if;
    return coalesce(least(kept, stray), '-infinity');
end ;

function lane_of(key text, lanes integer) returns smallint language plpgsql immutable set search_path=pg_catalog, pg_temp as 
declare
    hash bytea := sha256(convert_to(key, 'UTF8'));
begin
    return ((get_byte(hash, 0)::bigint << 24) + (get_byte(hash, 1) << 16) + (get_byte(hash, 2) << 8) + get_byte(hash, 3)) % lanes;
end ;

function lease(queue text, n integer DEFAULT 1, lease interval DEFAULT NULL::interval, wait interval DEFAULT '00:00:00'::interval) returns TABLE(id bigint, attempt integer, enqueued_at timestamp with time zone, due_at timestamp with time zone, payload text, metadata jsonb) language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    look text := $q$
        select b.id + m.k, b.attempt, b.enqueued_at, b.due_at, m.payload::text, m.metadata
        from trunkline.%I($1, $2, %s) b,
             lateral (select generate_series(0, b.size - 1) as k, unnest(b.payload) as payload, unnest(b.metadata) as metadata) m $q$;
    setting text;
    known text;
    reached timestamptz;
    seconds float8;
    pause float8 := 0.01;
begin
    if wait = '0' then
        perform trunkline.check_queue(queue);
        return query execute format(look, 'do_lease_' || queue, trunkline.in_lanes(queue, '$3'))
            using trunkline.check_n(n), lease, trunkline.floor(queue);
        return;
    end if;
    seconds := trunkline.check_wait(wait);
    setting := format('trunkline.floor_%s', to_regclass(format('trunkline.%I', 'queue_' || queue))::oid); -- see trunkline.floor
    loop
        -- As in trunkline.take.
        begin
            perform trunkline.check_queue(queue);
            reached := trunkline.floor(queue, keep => false);
            known := current_setting(setting, true);
            return query execute format(look, 'do_lease_' || queue, trunkline.in_lanes(queue, '$3'))
                using trunkline.check_n(n), lease, reached;
            if found or seconds <= 0 or n = 0 or pg_current_xact_id_if_assigned() is not null then
                perform trunkline.keep_floor(queue, reached);
                return;
            end if;
            raise exception sqlstate 'TL000';
        exception
            when sqlstate 'TL000' then
                perform set_config(setting, known, false);
            when undefined_function then
                perform trunkline.check_queue(queue); -- dropped since it was looked for
                raise;
        end;
        perform pg_sleep(least(pause, seconds));
        seconds := seconds - pause;
        pause := least(2 * pause, 0.2);
    end loop;
end ;

function lease_lane(queue text, n integer DEFAULT 100, lease interval DEFAULT NULL::interval) returns TABLE(holder bigint, id bigint, attempt integer, key text, enqueued_at timestamp with time zone, due_at timestamp with time zone, payload text, metadata jsonb) language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    holder := (random() * 9007199254740992)::bigint;
    return query select holder, m.* from trunkline.along_lanes(queue, holder, n, lease, 1) m;
end ;

function limit_queue(queue text, max_leased integer DEFAULT NULL::integer, per_second double precision DEFAULT NULL::double precision, burst integer DEFAULT NULL::integer, key_per_second double precision DEFAULT NULL::double precision, key_burst integer DEFAULT NULL::integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp lock_timeout=3s client_min_messages=warning as 
#variable_conflict use_variable
declare
    size float8 := coalesce(burst, greatest(ceil(per_second), 1), 1);
    key_size float8 := coalesce(key_burst, greatest(ceil(key_per_second), 1), 1);
begin
    perform trunkline.lock_queue(queue);
    perform trunkline.check_queue(queue);
    if (coalesce(max_leased, 1) >= 1 and coalesce(per_second, 1) > 0 and coalesce(per_second, 1) <= 1e9 and size between 1 and 1e9
        and (burst is null or per_second is not null)
        and coalesce(key_per_second, 1) > 0 and coalesce(key_per_second, 1) <= 1e9 and key_size between 1 and 1e9
        and (key_burst is null or key_per_second is not null)) is not true then
        raise exception 'the limits of queue % are out of bounds', quote_literal(queue) using errcode = 'invalid_parameter_value',
            hint = 'max_leased and burst are at least 1, per_second is more than 0 and at most 1000000000, and a burst needs a per_second; '
                   'so with key_burst and key_per_second. To stop a queue, pause it.';
    elsif key_per_second is not null and (select q.lanes = 0 from trunkline.queue q where q.name = queue) then
        raise exception 'queue % has no keys, so none has a rate', quote_literal(queue) using errcode = 'invalid_parameter_value',
            hint = 'Pass per_second, for the queue; or create one with trunkline.create_queue(..., lanes => 64).';
    end if;
    update trunkline.queue q
    set max_leased = max_leased, per_second = per_second, burst = case when per_second is not null then size end,
        key_per_second = key_per_second, key_burst = case when key_per_second is not null then key_size end
    where q.name = queue;
    begin
        if to_regclass(format('trunkline.%I', 'limit_' || queue)) is not null then
            execute format('lock table trunkline.%I in exclusive mode', 'limit_' || queue); -- as a dequeue does: see do_bucket_
        end if;
        if max_leased is null and per_second is null then
            execute format('drop table if exists trunkline.%I cascade', 'limit_' || queue);
            delete from trunkline.bucket b where b.queue = queue;
        else
            execute format('create table if not exists trunkline.%I ()', 'limit_' || queue);
            insert into trunkline.bucket as b (queue, tokens, filled_at) values (queue, size, clock_timestamp())
            on conflict on constraint pk_bucket do update
            set tokens = least(greatest(b.tokens, 0), excluded.tokens), filled_at = least(b.filled_at, excluded.filled_at);
        end if;
        if max_leased is null then
            execute format('drop index if exists trunkline.%I', 'leased_' || queue);
        else
            execute format('create index if not exists %I on trunkline.%I (due_at) where attempt > 0 and error is null',
                           'leased_' || queue, 'queue_' || queue);
        end if;
    exception when lock_not_available then
        -- Whoever waits for this lock makes everybody wait who comes after.
        raise exception 'queue % is in use', quote_literal(queue) using errcode = 'lock_not_available',
            hint = 'A transaction that touched it has been open for three seconds. End it (see pg_stat_activity), then try again.';
    end;
    perform trunkline.install_queue(queue);
    perform pg_notify('trunkline.' || queue, '');
end ;

function lock_queue(queue text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    lock table trunkline.migration in share mode;
    perform from trunkline.queue q where q.name = queue for no key update;
end ;

function messages(queue text, first_id bigint DEFAULT NULL::bigint, last_id bigint DEFAULT NULL::bigint, due_from timestamp with time zone DEFAULT NULL::timestamp with time zone, due_before timestamp with time zone DEFAULT NULL::timestamp with time zone) returns TABLE(id bigint, enqueued_at timestamp with time zone, due_at timestamp with time zone, attempt integer, error text, payload text, metadata jsonb, priority integer, key text) language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    bounded bool := coalesce(first_id, last_id) is not null or coalesce(due_from, due_before) is not null;
begin
    perform trunkline.check_queue(queue);
    return query execute format(
        'select m.id, m.enqueued_at, m.due_at, m.attempt, m.error, m.payload::text, m.metadata, m.priority, m.key from trunkline.%I%s m order by m.due_at, m.id',
        case when bounded then 'do_within_' else 'messages_' end || queue, case when bounded then '($1, $2, $3, $4)' else '' end)
        using coalesce(first_id, 0), coalesce(last_id, 9223372036854775807),
              coalesce(due_from, '-infinity'), coalesce(due_before, 'infinity');
end ;

function missing(ids bigint[], sizes integer[], found_nrs bigint[], found_ids bigint[], found_sizes integer[], OUT nrs bigint[], OUT missing_ids bigint[], OUT missing_sizes integer[]) returns record language plpgsql immutable set search_path=pg_catalog, pg_temp jit=off as 
begin
    with part as (
        select f.nr, f.id as low, f.id + f.size as high from unnest(found_nrs, found_ids, found_sizes) f(nr, id, size)
        union all
        select d.nr, e.at, e.at from unnest(ids, sizes) with ordinality d(id, size, nr), lateral (values (d.id), (d.id + d.size)) e(at)
    ), gap as (
        select p.nr, lag(p.high) over (partition by p.nr order by p.low, p.high) as low, p.low as high from part p
    )
    select array_agg(g.nr order by g.low, g.nr), array_agg(g.low order by g.low, g.nr), array_agg((g.high - g.low)::int order by g.low, g.nr)
    into nrs, missing_ids, missing_sizes from gap g where g.high > g.low;
end ;

function more(queue text, holder bigint, n integer DEFAULT 100, lease interval DEFAULT NULL::interval) returns TABLE(id bigint, attempt integer, key text, enqueued_at timestamp with time zone, due_at timestamp with time zone, payload text, metadata jsonb) language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    holds bool;
begin
    perform trunkline.check_keyed(queue);
    execute format('select exists (select from trunkline.%I l where l.holder = $1 and l.held_until > clock_timestamp())', 'lane_' || queue)
        into holds using holder;
    if not holds then
        raise exception 'holder % has no lane of queue %', holder, quote_literal(queue)
            using errcode = 'TL001', hint = 'Its leases ended, or it gave the lane back. Lease another with trunkline.lease_lane.';
    end if;
    return query select m.* from trunkline.along_lanes(queue, holder, n, lease, 0) m;
end ;

function more_lanes(queue text, lanes integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
declare
    now_is trunkline.queue;
    first int;
    rows text := 'queue_' || queue;
    held text := 'lane_' || queue;
    lines text := 'line_' || queue;
begin
    select * into strict now_is from trunkline.queue q where q.name = queue;
    if now_is.lanes = 0 then
        raise exception 'queue % has no lanes: its messages have no keys', quote_literal(queue)
            using errcode = 'feature_not_supported', hint = 'Create a queue with trunkline.create_queue(..., lanes => 64).';
    elsif lanes < now_is.lanes or lanes % now_is.lanes > 0 then
        raise exception 'queue % has % lanes, and cannot have %', quote_literal(queue), now_is.lanes, lanes
            using errcode = 'invalid_parameter_value', hint = format('Pass a multiple of %s, up to 256: each lane falls into several.', now_is.lanes);
    end if;
    first := now_is.first_lane + now_is.lanes;
    -- In the order in which whoever leases meets them. Whoever has begun is done by then.
    execute format('lock table trunkline.%I, trunkline.%I, trunkline.%I in access exclusive mode', held, rows, lines);
    execute format('drop trigger keep_place on trunkline.%I', rows);
    execute format('alter table trunkline.%I drop constraint lane', rows);
    perform trunkline.sort_lanes(queue, lanes, first);
    execute format('alter table trunkline.%I add constraint lane check (lane between %s and %s)', rows, first, first + lanes - 1);
    execute format('insert into trunkline.%1$I (lane, holder, held_until, wanted_until, served_at, floor, starts_until, empty_at)
                    select $1 + n, h.holder, h.held_until, h.wanted_until, h.served_at, h.floor, h.starts_until, h.empty_at
                    from generate_series(0, $2 - 1) n join trunkline.%1$I h on h.lane = $3 + n %% $4', held)
        using first, lanes, now_is.first_lane::int, now_is.lanes;
    execute format('delete from trunkline.%I h where h.lane >= -$1 and h.lane < $1', held) using first;
    execute format('insert into trunkline.%I (lane) select -1 - n from generate_series($1, $1 + $2 - 1) n', held) using first, lanes; -- see create_queue
    execute format('update trunkline.%I l set lane = $1 + trunkline.lane_of(l.key, $2)', lines) using first, lanes;
    execute format('create trigger keep_place before insert on trunkline.%I for each row execute function trunkline.keep_place(%s, %s)',
                   rows, first, lanes);
    update trunkline.queue q set lanes = lanes, first_lane = first where q.name = queue;
end ;

function own(statement text, r anyelement) returns jsonb language plpgsql stable set search_path=pg_catalog, pg_temp DateStyle=ISO IntervalStyle=postgres extra_float_digits=1 TimeZone=UTC lc_monetary=C as 
declare
    own jsonb;
begin
    execute statement into own using r;
    return own;
end ;

function pause_queue(queue text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.set_paused(queue, true);
end ;

function pause_schedule(name text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
begin
    update trunkline.schedule s set paused = true where s.name = name;
    perform trunkline.found_schedule(name, found);
end ;

function payload_bytes(queue text, bytes integer) returns bigint language plpgsql immutable set search_path=pg_catalog, pg_temp as 
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

function payload_type(queue text) returns regtype language plpgsql stable set search_path=pg_catalog, pg_temp as 
begin
    return (select a.atttypid from pg_attribute a
            where a.attrelid = to_regclass(format('trunkline.%I', 'dead_' || queue)) and a.attname = 'payload');
end ;

function payloads_of(texts text[], typed anyarray) returns anyarray language plpgsql stable set search_path=pg_catalog, pg_temp DateStyle=ISO, YMD IntervalStyle=postgres TimeZone=UTC extra_float_digits=3 bytea_output=hex lc_monetary=C as 
begin
    typed := texts;
    return typed;
end ;

function place_schedules(tids tid[], nexts timestamp with time zone[], lasts timestamp with time zone[], problems text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_hashjoin=off enable_mergejoin=off jit=off as 
begin
    update trunkline.schedule s
    set next_at = case when p.next_at = 'infinity' and p.problem is not null then clock_timestamp() + interval '1 hour' else p.next_at end,
        placed = p.next_at < 'infinity' or p.problem is null, placed_at = clock_timestamp(), owed_at = null,
        last_at = coalesce(p.last_at, s.last_at), problem = p.problem
    from unnest(tids, nexts, lasts, problems) p(tid, next_at, last_at, problem) where s.ctid = p.tid;
end ;

function prune(queue text, age interval) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    if age is null or age < '0' then
        raise exception 'an age of % is out of bounds', coalesce(age::text, 'null')
            using errcode = 'invalid_parameter_value', hint = 'An age is at least zero; zero deletes the whole archive.';
    end if;
    execute format('select trunkline.%I($1)', 'do_prune_' || queue) into count using age;
    return count;
end ;

function prune_keys(queue text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    perform trunkline.check_unique(queue, 0, null, '{}', null);
    execute format('select trunkline.%I(null)', 'do_forget_' || queue) into count;
    return count;
end ;

function purge(queue text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('with gone as (delete from trunkline.%I q returning q.size) select coalesce(sum(g.size), 0) from gone g',
                   'queue_' || queue) into count;
    if (select q.lanes > 0 from trunkline.queue q where q.name = queue) then
        execute format('delete from trunkline.%I', 'line_' || queue);
    end if;
    return count;
end ;

function read_as(written text, sample anyelement) returns anyelement language plpgsql stable set search_path=pg_catalog, pg_temp DateStyle=ISO IntervalStyle=postgres TimeZone=UTC extra_float_digits=1 bytea_output=hex lc_monetary=C xmloption=content as 
begin
    sample := written;
    return sample;
end ;

function rebuild(queue text) returns TABLE(what text, changed bigint) language plpgsql volatile set search_path=pg_catalog, pg_temp lock_timeout=10s client_min_messages=warning as 
#variable_conflict use_variable
declare
    now_is trunkline.queue;
    rows text := 'queue_' || queue;
    held text := 'lane_' || queue;
    lines text := 'line_' || queue;
    uniques text := 'unique_' || queue;
    first int;
    next_id bigint;
begin
    perform trunkline.lock_queue(queue);
    perform trunkline.check_queue(queue);
    select * into strict now_is from trunkline.queue q where q.name = queue;
    first := now_is.first_lane;
    perform trunkline.install_queue(queue); -- what comes next calls its functions
    if now_is.lanes > 0 then
        begin
            -- In the order in which a lease meets them.
            execute format('lock table trunkline.%I, trunkline.%I, trunkline.%I in access exclusive mode', held, rows, lines);
        exception when lock_not_available then
            raise exception 'queue % is in use', quote_literal(queue) using errcode = 'lock_not_available',
                hint = 'A transaction that touched it has been open for ten seconds. End it (see pg_stat_activity), then try again.';
        end;
        execute format('update trunkline.%I q set keys = array_replace(q.keys, null, '''') where array_position(q.keys, null) is not null', rows);
        get diagnostics changed = row_count;
        what := 'keys that were null';
        return next;
        what := 'rows in the partition of other keys';
        changed := trunkline.sort_lanes(queue, now_is.lanes, first);
        return next;
        execute format('delete from trunkline.%I h where h.lane <> all (array(select n from generate_series($1, $1 + $2 - 1) n union all '
                       'select -1 - n from generate_series($1, $1 + $2 - 1) n))', held) using first, now_is.lanes;
        execute format('insert into trunkline.%I (lane) select case when s.locks then -1 - n else n end '
                       'from generate_series($1, $1 + $2 - 1) n, (values (true), (false)) s(locks) on conflict (lane) do nothing', held) using first, now_is.lanes;
        get diagnostics changed = row_count;
        what := 'partitions that were missing';
        return next;
        -- A leased message has its consumer, and what is behind it of its key waits: so a partition without a holder gets an unknown one, until the lease ends.
        execute format($q$
            update trunkline.%1$I h
            set holder = case when h.held_until > clock_timestamp() then h.holder else (random() * 9007199254740992)::bigint end, held_until = l.until,
                starts_until = greatest(h.starts_until, l.until), empty_at = greatest(h.empty_at, clock_timestamp())
            from (select q.lane, max(q.due_at) as until from trunkline.%2$I q
                  where q.attempt > 0 and q.error is null and q.due_at > clock_timestamp() group by q.lane) l
            where l.lane = h.lane and h.held_until < l.until $q$, held, rows);
        get diagnostics changed = row_count;
        what := 'partitions with leases and no holder';
        return next;
        execute format('update trunkline.%I h set floor = ''-infinity'' where isfinite(h.floor)', held);
        if now_is.per_key = 1 then
            -- Of a key that waits for its retry nothing else goes first.
            execute format('select trunkline.%I(array_agg(q.id), array_agg(q.size)) from trunkline.%I q '
                           'where q.line = '''' and q.error is not null and q.due_at > clock_timestamp() having count(*) > 0', 'do_hold_' || queue, rows);
        end if;
        execute format('delete from trunkline.%1$I l where l.until <= clock_timestamp() and not exists '
                       '(select from trunkline.%2$I q where q.lane = l.lane and q.line = l.key) or l.lane <> $1 + trunkline.lane_of(l.key, $2)', lines, rows)
            using first, now_is.lanes;
        execute format($q$
            insert into trunkline.%1$I as l (lane, key, until)
            select q.lane, q.line, coalesce(max(q.due_at) filter (where q.error is not null and q.due_at > clock_timestamp()), '-infinity')
            from trunkline.%2$I q where q.line <> '' group by q.lane, q.line
            on conflict (lane, key) do update set until = excluded.until where l.until < excluded.until $q$, lines, rows);
        get diagnostics changed = row_count;
        what := 'keys whose backlog was not known';
        return next;
    end if;
    if now_is.uniqueness then
        execute format('delete from trunkline.%I u where u.until is null and not exists (
                            select from trunkline.%I q where q.id <= u.id and q.id >= u.id / 1024 * 1024 and q.id + q.size > u.id)', uniques, rows);
        get diagnostics changed = row_count;
        what := 'unique keys of messages that are gone';
        return next;
    end if;
    if coalesce(now_is.max_leased, now_is.per_second) is not null then
        insert into trunkline.bucket as b (queue, tokens, filled_at) values (queue, coalesce(now_is.burst, 1), clock_timestamp())
        on conflict on constraint pk_bucket do update set tokens = excluded.tokens, filled_at = excluded.filled_at
        where b.tokens > excluded.tokens or b.filled_at > excluded.filled_at;
        get diagnostics changed = row_count;
        what := 'limits in a state that cannot be';
        return next;
        execute format('create table if not exists trunkline.%I ()', 'limit_' || queue);
    end if;
    insert into trunkline.floor as f (queue) values (queue) on conflict on constraint pk_floor do update set reached = excluded.reached;
    execute format('select least(i.last_value, 9223372036854774783) + case when i.is_called then 1024 else 0 end from trunkline.%I i', 'id_' || queue) into next_id;
    what := 'sequences behind their ids';
    changed := (trunkline.repair_sequence(queue) <> next_id)::int;
    return next;
    perform trunkline.apply_rights(queue), trunkline.apply_shared_rights();
    perform pg_notify('trunkline.' || queue, '');
end ;

function refuse_keys(queue text) returns void language plpgsql stable set search_path=pg_catalog, pg_temp as 
begin
    raise exception 'queue % has keys: its messages are leased along lanes', quote_literal(queue)
        using errcode = 'feature_not_supported', hint = 'Run a worker; or lease a lane with trunkline.lease_lane.';
end ;

function refuse_older() returns trigger language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    raise exception 'this schema is at version %, newer than this program supports', (select max(v.version) from trunkline.version v)
        using errcode = 'object_not_in_prerequisite_state', hint = 'Nothing was changed; migrate with a newer trunkline.';
end ;

function refuse_row() returns trigger language plpgsql volatile as 
begin
    if new.size operator(pg_catalog.=) 1 and pg_catalog.array_dims(new.payload) operator(pg_catalog.=) '[1:1]'
       and new.payload[1] is not null and new.metadata is null then
        return new;
    end if;
    if new.size operator(pg_catalog.>=) 1 and new.size operator(pg_catalog.<=) 1024
       and (new.error is not null
            or pg_catalog.array_ndims(new.payload) operator(pg_catalog.=) 1
               and pg_catalog.array_lower(new.payload, 1) operator(pg_catalog.=) 1
               and pg_catalog.cardinality(new.payload) operator(pg_catalog.=) new.size
               and pg_catalog.num_nulls(variadic new.payload) operator(pg_catalog.=) 0
               and (new.metadata is null
                    or pg_catalog.array_ndims(new.metadata) operator(pg_catalog.=) 1
                       and pg_catalog.array_lower(new.metadata, 1) operator(pg_catalog.=) 1
                       and pg_catalog.cardinality(new.metadata) operator(pg_catalog.<=) new.size)) then
        return new;
    end if;
    raise exception 'a row of % is no batch: its size is not its number of payloads, or a payload is null', tg_table_name
        using errcode = 'check_violation',
              hint = 'Enqueue through trunkline.enqueue or enqueue_many, or insert an array of one dimension, from 1 on, and its length (1 to 1,024) as size.';
end ;

function release(queue text, id bigint, attempt integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.settle('release', queue, array[id], array[attempt]);
    perform pg_notify('trunkline.' || queue, '');
end ;

function release_lane(queue text, holder bigint) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    free bool;
begin
    perform trunkline.check_keyed(queue);
    execute format('select trunkline.%I(null, $1)', 'do_leave_' || queue) using holder;
    execute format('select not exists (select from trunkline.%I l where l.holder = $1 and l.held_until > clock_timestamp())', 'lane_' || queue)
        into free using holder;
    return free;
end ;

function release_many(queue text, ids bigint[], attempts integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.settle('release', queue, ids, attempts);
    perform pg_notify('trunkline.' || queue, '');
end ;

function repair_sequence(queue text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off as 
declare
    half constant bigint := 4611686018427387904;
    next_id bigint;
begin
    perform trunkline.check_queue(queue);
    execute format($q$
        select greatest((select i.last_value + case when i.is_called then 1024 else 0 end from trunkline.%1$I i where i.last_value < $2),
                        ((select q.id from trunkline.%2$I q where q.id < $2 order by q.id desc limit 1) / 1024 + 1) * 1024,
                        ((select d.id from trunkline.%3$I d where d.id < $2 order by d.id desc limit 1) / 1024 + 1) * 1024,
                        ((select a.id from trunkline.%4$I a where a.id < $2 order by a.id desc limit 1) / 1024 + 1) * 1024,
                        (select r.next_id from trunkline.dropped r where r.queue = $1 and r.next_id < $2), 1024) $q$,
        'id_' || queue, 'queue_' || queue, 'dead_' || queue, 'archive_' || queue) into next_id using queue, half;
    next_id := (next_id + 1023) / 1024 * 1024; -- a row begins there, whatever a hand has set
    perform setval(format('trunkline.%I', 'id_' || queue), next_id, false);
    return next_id;
end ;

function repair_times(queue text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    messages bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('select trunkline.%I(2, (select greatest(f.reached, f.shown) - clock_timestamp() from trunkline.floor f
                                           where f.queue = $1 and greatest(f.reached, f.shown) > clock_timestamp()))', 'do_right_' || queue)
        into messages using queue;
    update trunkline.floor f set reached = case when f.reached <= clock_timestamp() then f.reached else '-infinity' end, shown = clock_timestamp()
    where f.queue = repair_times.queue and greatest(f.reached, f.shown) > clock_timestamp();
    if has_table_privilege('trunkline.schedule', 'update') then
        perform trunkline.right_schedules();
    end if;
    return messages;
end ;

function replay(queue text, ids bigint[]) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('select count(*) from trunkline.%I($1, null)', 'do_replay_' || queue)
        into count using trunkline.check_ids(ids, 'replay');
    perform pg_notify('trunkline.' || queue, '');
    return count;
end ;

function replay_all(queue text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('select count(*) from trunkline.%I(null, null)', 'do_replay_' || queue) into count;
    perform pg_notify('trunkline.' || queue, '');
    return count;
end ;

function reschedule(queue text, ids bigint[], due timestamp with time zone) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    return query select trunkline.change('reschedule', queue, ids, due);
    perform pg_notify('trunkline.' || queue, '');
end ;

function resume_queue(queue text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.set_paused(queue, false);
end ;

function resume_schedule(name text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
begin
    update trunkline.schedule s
    set paused = false, placed = s.placed and not s.paused, owed_at = case when not s.paused then s.owed_at end, next_at = case when s.paused then clock_timestamp() else s.next_at end
    where s.name = name;
    perform trunkline.found_schedule(name, found);
    perform pg_notify('trunkline._schedules', '');
end ;

function retry(queue text, id bigint, attempt integer, delay interval DEFAULT '00:00:00'::interval, error text DEFAULT ''::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.check_delay(delay);
    perform trunkline.settle('retry', queue, array[id], array[attempt], delay, error);
    perform pg_notify('trunkline.' || queue, '');
end ;

function retry_many(queue text, ids bigint[], attempts integer[], delay interval DEFAULT '00:00:00'::interval, error text DEFAULT ''::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.check_delay(delay);
    perform trunkline.settle('retry', queue, ids, attempts, delay, error);
    perform pg_notify('trunkline.' || queue, '');
end ;

function revoke_rights(role regrole, queue text DEFAULT NULL::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    name text := trunkline.check_role(role);
    of_queue text;
begin
    lock table trunkline.migration in share row exclusive mode; -- see trunkline.lock_queue
    if queue is not null then
        perform trunkline.check_queue(queue);
        if exists (select from trunkline.granted g where g.role = name and g.queue = '') then
            raise exception '% has rights in every queue', quote_ident(name) using errcode = 'object_not_in_prerequisite_state',
                hint = 'Revoke them everywhere, then grant them queue by queue.';
        end if;
    end if;
    delete from trunkline.granted g where g.role = name and (g.queue = revoke_rights.queue or revoke_rights.queue is null);
    for of_queue in select q.name from trunkline.queue q where q.name = queue or queue is null loop
        execute format('revoke all on trunkline.%I, trunkline.%I, trunkline.%I, trunkline.%I from %I', 'queue_' || of_queue,
                       'dead_' || of_queue, 'archive_' || of_queue, 'messages_' || of_queue, name);
        execute format('revoke all (due_at, size, payload, metadata, id) on trunkline.%I from %I', 'queue_' || of_queue, name);
        execute format('revoke all on sequence trunkline.%I from %I', 'id_' || of_queue, name);
        if exists (select from trunkline.queue q where q.name = of_queue and q.uniqueness) then
            execute format('revoke all on trunkline.%I from %I', 'unique_' || of_queue, name);
        end if;
        if to_regclass(format('trunkline.%I', 'limit_' || of_queue)) is not null then
            execute format('revoke all on trunkline.%I from %I', 'limit_' || of_queue, name);
        end if;
        if exists (select from trunkline.queue q where q.name = of_queue and q.lanes > 0) then
            execute format('revoke all on trunkline.%I, trunkline.%I from %I', 'lane_' || of_queue, 'line_' || of_queue, name);
        end if;
        perform trunkline.apply_rights(of_queue);
    end loop;
    execute format('revoke all on trunkline.migration, trunkline.version, trunkline.queue, trunkline.bucket, trunkline.floor, trunkline.waiting, trunkline.worker, trunkline.schedule, trunkline.stripe, trunkline.audit, trunkline.history, trunkline.relay from %I', name);
    execute format('revoke all on schema %I from %I', rtrim('trunkline.', '.'), name);
    perform trunkline.apply_shared_rights(); -- what other rights of the role need
end ;

function right_schedules() returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off as 
declare
    clock timestamptz := clock_timestamp();
    count bigint := 0;
begin
    if exists (select from trunkline.schedule s where s.placed_at > clock + interval '1 minute') then
        update trunkline.schedule s
        set placed = false, placed_at = null, owed_at = null, next_at = clock, last_at = least(s.last_at, clock)
        where s.name = any (array(
            select a.name from trunkline.schedule a where a.placed_at > clock + interval '1 minute' for update skip locked));
        get diagnostics count = row_count;
    end if;
    return count;
end ;

function schedules_due_in(since timestamp with time zone, OUT due_in double precision, OUT clock timestamp with time zone) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off as 
begin
    perform trunkline.right_schedules();
    select s.next_at into clock from trunkline.schedule s
    where not s.paused and s.next_at >= since and s.next_at < 'infinity' order by s.next_at limit 1;
    due_in := extract(epoch from clock - clock_timestamp());
    clock := clock_timestamp();
end ;

function set_paused(queue text, paused boolean) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
begin
    perform trunkline.lock_queue(queue);
    perform trunkline.check_queue(queue);
    update trunkline.queue q set paused = paused, paused_at = case when paused then clock_timestamp() end where q.name = queue and q.paused <> paused;
    if found then
        perform trunkline.install_queue(queue);
        perform pg_notify('trunkline.' || queue, '');
    end if;
end ;

function set_schedule(name text, queue text, expression text, payload text, zone text DEFAULT 'UTC'::text, metadata jsonb DEFAULT NULL::jsonb, missed text DEFAULT 'once'::text, priority integer DEFAULT 0, key text DEFAULT NULL::text) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
declare
    known trunkline.schedule;
    same_times bool;
begin
    perform trunkline.check_queue(queue);
    perform trunkline.check_schedule(name, expression, zone, missed);
    perform trunkline.check_priority(queue, priority);
    perform trunkline.check_keys(queue, case when key is not null then array[key] end, 1);
    if payload is null then
        raise exception 'the payload of schedule % is null', quote_literal(name) using errcode = 'null_value_not_allowed',
            hint = 'Pass the payload as text, of the type of the queue.';
    end if;
    execute format('select trunkline.written($1::%s)', format_type(trunkline.payload_type(queue), -1)) into payload using payload;
    metadata := nullif(metadata, '{}');
    perform trunkline.check_metadata(coalesce(metadata, '{}') || jsonb_build_object('schedule', name, 'tick', '2000-01-01T00:00:00Z'));
    perform trunkline.right_schedules();
    select * into known from trunkline.schedule s where s.name = name for update;
    if (known.queue, known.expression, known.zone, known.payload, known.metadata, known.missed, known.priority, known.key)
       is not distinct from (queue, expression, zone, payload, metadata, missed, priority, key) then
        return false;
    end if;
    same_times := (known.expression, known.zone) is not distinct from (expression, zone);
    insert into trunkline.schedule as s (name, queue, expression, zone, payload, metadata, missed, priority, key, next_at)
    values (name, queue, expression, zone, payload, metadata, missed, priority, key, clock_timestamp())
    on conflict on constraint pk_schedule do update
        set queue = excluded.queue, expression = excluded.expression, zone = excluded.zone, payload = excluded.payload,
            metadata = excluded.metadata, missed = excluded.missed, priority = excluded.priority, key = excluded.key, placed = same_times and s.placed,
            next_at = case when same_times then coalesce(s.owed_at, s.next_at) else excluded.next_at end, owed_at = null,
            problem = case when same_times then s.problem end;
    perform pg_notify('trunkline._schedules', '');
    return true;
end ;

function settle(verb text, queue text, ids bigint[], attempts integer[], span interval DEFAULT NULL::interval, reason text DEFAULT NULL::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp jit=off as 
declare
    is_ordered bool;
    is_limited bool;
    lost bigint[];
begin
    perform trunkline.check_queue(queue);
    if ids is null or cardinality(ids) is distinct from cardinality(attempts) or array_position(ids, null) is not null
       or array_position(attempts, null) is not null then
        raise exception 'every message needs its attempt: % ids, % attempts', coalesce(cardinality(ids), 0), coalesce(cardinality(attempts), 0)
            using errcode = 'invalid_parameter_value', hint = 'Pass id and attempt as trunkline.lease returned them.';
    end if;
    if length(reason) > 16384 then
        -- As the library bounds it: tracebacks begin with the call and end with the error.
        reason := left(reason, 8000) || chr(10) || format('... %s characters left out ...', length(reason) - 16000) || chr(10) || right(reason, 8000);
    end if;
    select q.lanes > 0 and q.per_key = 1, q.max_leased is not null into is_ordered, is_limited from trunkline.queue q where q.name = settle.queue;
    if is_ordered and verb in ('ack', 'archive') then
        execute format('select trunkline.%I($1)', 'do_behind_' || queue) into lost using ids;
        if lost is not null then
            raise exception 'message % of queue % stands behind one of its key that waits for its retry', array_to_string(lost[1:3], ', '), quote_literal(queue)
                using errcode = 'TL001', detail = 'The order of the key would be lost.',
                      hint = 'Roll back what was done for it, and give it back with trunkline.release: it comes again, in order.';
        end if;
    end if;
    execute format($q$
        with asked as materialized (
            select distinct i.id, i.attempt from unnest($1::bigint[], $2::int[]) i(id, attempt)
        ), range as (
            select min(i.id) as id, count(*)::int as size, i.attempt
            from (select a.id, a.attempt, a.id - row_number() over (partition by a.attempt order by a.id) as island
                  from asked a where a.id between 1024 and 9223372036854774783) i
            group by i.attempt, i.island
        ), settled as materialized (
            select d.id + k as id, d.attempt
            from (select array_agg(id order by id, attempt) as ids, array_agg(size order by id, attempt) as sizes,
                         array_agg(attempt order by id, attempt) as attempts from range) r,
                 trunkline.%I(r.ids, r.sizes, r.attempts %s) d, generate_series(0, d.size - 1) k
            where r.ids is not null
        )
        select array_agg(l.id order by l.id) from (select id, attempt from asked except select id, attempt from settled) l $q$,
        'do_' || verb || '_' || queue,
        case verb when 'retry' then ', array_fill($3, array[cardinality(r.ids)]), array_fill($4, array[cardinality(r.ids)])'
                  when 'charge' then ', array_fill($3, array[cardinality(r.ids)]), array_fill($4, array[cardinality(r.ids)])'
                  when 'bury' then ', array_fill($4, array[cardinality(r.ids)])'
                  when 'extend' then ', $3' else '' end)
        into lost using ids, attempts, span, reason;
    if is_limited then
        perform pg_notify('trunkline.' || queue, ''); -- others may have waited for that
    end if;
    if lost is not null then
        raise exception 'the lease of message % of queue % is lost', array_to_string(lost[1:3], ', '), quote_literal(queue)
            using errcode = 'TL001', detail = 'It ended, and the message may be someone else''s now.',
                  hint = 'Roll back what was done for it. Work that takes longer needs a longer lease, or trunkline.extend.';
    end if;
end ;

function shift(queue text, passed interval) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    messages bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('select trunkline.%I($1)', 'do_shift_' || queue) into messages using passed;
    perform pg_notify('trunkline.' || queue, '');
    if has_table_privilege('trunkline.schedule', 'update') then
        update trunkline.schedule s set next_at = s.next_at - passed, owed_at = s.owed_at - passed where s.queue = shift.queue and s.placed;
        perform pg_notify('trunkline._schedules', '') where found;
    end if;
    return messages;
end ;

function sort_lanes(queue text, lanes integer, first integer) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
declare
    rows text := 'queue_' || queue;
    columns text;
    parts text;
    count bigint;
begin
    -- What Postgres fills takes no value, not even its own.
    select string_agg(quote_ident(a.attname), ', ' order by a.attnum), string_agg(case a.attname
               when 'id' then 'q.id + r.place - 1' when 'size' then 'r.size' when 'lane' then '$2 + r.lane'
               when 'metadata' then 'case when num_nonnulls(variadic q.metadata[r.place : r.place + r.size - 1]) > 0 '
                                    'then q.metadata[r.place : r.place + r.size - 1] end'
               when 'payload' then 'q.payload[r.place : r.place + r.size - 1]' when 'keys' then 'q.keys[r.place : r.place + r.size - 1]'
               else format('q.%I', a.attname) end, ', ' order by a.attnum)
    into columns, parts from pg_attribute a
    where a.attrelid = to_regclass(format('trunkline.%I', rows)) and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' and a.attidentity = '';
    execute format($q$
        with run as materialized (
            select q.id, r.place, r.size, r.lane from trunkline.%1$I q, lateral (
                select min(k.nr)::int as place, count(*)::int as size, k.lane from (
                    select u.nr, l.lane, u.nr - row_number() over (partition by l.lane order by u.nr) as island
                    from unnest(q.keys) with ordinality u(key, nr), lateral (select trunkline.lane_of(u.key, $1) as lane) l) k
                group by k.lane, k.island) r
            where q.lane <> $2 + r.lane or r.size < q.size
        ), more as (
            insert into trunkline.%1$I (%2$s) select %3$s from run r join trunkline.%1$I q on q.id = r.id where r.place > 1)
        update trunkline.%1$I q
        set lane = $2 + r.lane, size = r.size, payload = q.payload[:r.size], keys = q.keys[:r.size],
            metadata = case when num_nonnulls(variadic q.metadata[:r.size]) > 0 then q.metadata[:r.size] end
        from run r where q.id = r.id and r.place = 1 $q$, rows, columns, parts) using lanes, first;
    get diagnostics count = row_count;
    return count;
end ;

function stats(queue text) returns TABLE(due bigint, delayed bigint, leased bigint, to_retry bigint, dead bigint, rows bigint, oldest_due interval) language plpgsql volatile set search_path=pg_catalog, pg_temp as 
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

function take(queue text, n integer DEFAULT 1, wait interval DEFAULT '00:00:00'::interval) returns TABLE(id bigint, attempt integer, enqueued_at timestamp with time zone, payload text, metadata jsonb) language plpgsql volatile set search_path=pg_catalog, pg_temp as 
declare
    look text := $q$
        select b.id + m.k, b.attempt, b.enqueued_at, m.payload::text, m.metadata
        from trunkline.%I($1, %s) b,
             lateral (select generate_series(0, b.size - 1) as k, unnest(b.payload) as payload, unnest(b.metadata) as metadata) m $q$;
    setting text;
    known text;
    reached timestamptz;
    seconds float8;
    pause float8 := 0.01;
begin
    if wait = '0' then
        perform trunkline.check_queue(queue);
        return query execute format(look, 'do_take_' || queue, trunkline.in_lanes(queue, '$2'))
            using trunkline.check_n(n), trunkline.floor(queue);
        return;
    end if;
    seconds := trunkline.check_wait(wait);
    setting := format('trunkline.floor_%s', to_regclass(format('trunkline.%I', 'queue_' || queue))::oid); -- see trunkline.floor
    loop
        begin
            perform trunkline.check_queue(queue);
            reached := trunkline.floor(queue, keep => false);
            known := current_setting(setting, true);
            return query execute format(look, 'do_take_' || queue, trunkline.in_lanes(queue, '$2'))
                using trunkline.check_n(n), reached;
            if found or seconds <= 0 or n = 0 or pg_current_xact_id_if_assigned() is not null then
                perform trunkline.keep_floor(queue, reached);
                return;
            end if;
            -- Nothing was changed. Undone, the look lets go of its locks on the tables; it must not lose the floor that it found.
            raise exception sqlstate 'TL000';
        exception
            when sqlstate 'TL000' then
                perform set_config(setting, known, false);
            when undefined_function then
                perform trunkline.check_queue(queue); -- dropped since it was looked for
                raise;
        end;
        perform pg_sleep(least(pause, seconds));
        seconds := seconds - pause;
        pause := least(2 * pause, 0.2);
    end loop;
end ;

function tick(tids tid[], ticks timestamp with time zone[]) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_hashjoin=off enable_mergejoin=off jit=off lock_timeout=1s as 
declare
    q record;
begin
    for q in
        select s.queue, s.priority, array_agg(s.payload order by t.nr) as payloads,
               case when count(s.key) > 0 then array_agg(s.key order by t.nr) end as keys,
               array_agg(coalesce(s.metadata, '{}') || jsonb_build_object('schedule', s.name,
                   'tick', to_char(t.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) order by t.nr) as metadata
        from unnest(tids, ticks) with ordinality t(tid, at, nr) join trunkline.schedule s on s.ctid = t.tid
        group by s.queue, s.priority order by s.queue, s.priority desc
    loop
        return query execute format(
            'select * from trunkline.enqueue_many($1, trunkline.payloads_of($2, null::%s[]), interval ''0'', $3, $4, keys => $5)',
            format_type(trunkline.payload_type(q.queue), -1)) using q.queue, q.payloads::text[], q.metadata, q.priority, q.keys;
    end loop;
end ;

function time_of(epoch bigint) returns timestamp with time zone language plpgsql immutable set search_path=pg_catalog, pg_temp as 
begin
    return case when epoch > '-9223372036854775808' then timestamptz 'epoch' + epoch * interval '1 us' else '-infinity' end;
end ;

function wait_no_more(consumer text) returns SETOF text language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off as 
#variable_conflict use_variable
begin
    return query delete from trunkline.waiting w where w.consumer = consumer collate "default" returning w.consumer;
end ;

function written(payload anyelement) returns text language plpgsql stable set search_path=pg_catalog, pg_temp DateStyle=ISO IntervalStyle=postgres TimeZone=UTC extra_float_digits=1 bytea_output=hex lc_monetary=C xmloption=content as 
begin
    return payload::text;
end ;
