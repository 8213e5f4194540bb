-- The schema that the files in this folder install, with one queue of each kind: `emails` is plain, `tasks` has priorities and uniqueness, `orders`
-- has partitions and limits. A test reads it off the catalog, and writes it with TRUNKLINE_BLESS=1. It is not to be run. Bodies are those
-- of the queues' own functions; the others' are in functions/.

table archive_emails (
    id bigint not null,
    enqueued_at timestamp with time zone not null,
    archived_at timestamp with time zone not null default clock_timestamp(),
    attempt integer not null,
    payload jsonb not null,
    metadata jsonb,
    own jsonb
);

table archive_orders (
    id bigint not null,
    enqueued_at timestamp with time zone not null,
    archived_at timestamp with time zone not null default clock_timestamp(),
    attempt integer not null,
    payload payload_orders not null,
    metadata jsonb,
    own jsonb
);

table archive_tasks (
    id bigint not null,
    enqueued_at timestamp with time zone not null,
    archived_at timestamp with time zone not null default clock_timestamp(),
    attempt integer not null,
    payload text not null,
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

table dead_orders (
    id bigint not null,
    enqueued_at timestamp with time zone not null,
    dead_at timestamp with time zone not null default clock_timestamp(),
    attempt integer not null,
    error text not null,
    payload payload_orders,
    metadata jsonb,
    released integer not null default 0,
    own jsonb
);

table dead_tasks (
    id bigint not null,
    enqueued_at timestamp with time zone not null,
    dead_at timestamp with time zone not null default clock_timestamp(),
    attempt integer not null,
    error text not null,
    payload text,
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

table lane_orders (
    lane smallint not null,
    holder bigint,
    held_until timestamp with time zone not null default '-infinity'::timestamp with time zone,
    wanted_until timestamp with time zone not null default '-infinity'::timestamp with time zone,
    served_at timestamp with time zone not null default '-infinity'::timestamp with time zone,
    floor timestamp with time zone not null default '-infinity'::timestamp with time zone,
    starts_until timestamp with time zone not null default '-infinity'::timestamp with time zone,
    empty_at timestamp with time zone not null default '-infinity'::timestamp with time zone
) with (fillfactor=10);

table limit_orders (
);

table line_orders (
    lane smallint not null,
    key text not null,
    until timestamp with time zone not null
) with (fillfactor=50);

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

view messages_orders (
    id bigint,
    enqueued_at timestamp with time zone,
    due_at timestamp with time zone,
    attempt integer,
    error text,
    payload payload_orders,
    metadata jsonb,
    priority integer,
    key text
);

view messages_tasks (
    id bigint,
    enqueued_at timestamp with time zone,
    due_at timestamp with time zone,
    attempt integer,
    error text,
    payload text,
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
) with (autovacuum_vacuum_threshold=1000, autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_cost_delay=0);

table queue_orders (
    id bigint not null default nextval('id_orders'::regclass),
    enqueued_at timestamp with time zone not null default clock_timestamp(),
    due_at timestamp with time zone not null default clock(),
    attempt integer not null default 0,
    released integer not null default 0,
    size integer not null,
    error text,
    payload payload_orders[] not null,
    metadata jsonb[],
    lane smallint not null,
    keys text[] not null,
    line text not null default ''::text,
    place timestamp with time zone not null
) with (autovacuum_vacuum_threshold=1000, autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_cost_delay=0);

table queue_tasks (
    id bigint not null default nextval('id_tasks'::regclass),
    enqueued_at timestamp with time zone not null default clock_timestamp(),
    due_at timestamp with time zone not null default clock(),
    attempt integer not null default 0,
    released integer not null default 0,
    size integer not null,
    error text,
    payload text[] not null,
    metadata jsonb[],
    lane smallint not null default 0
) with (autovacuum_vacuum_threshold=1000, autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_cost_delay=0);

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
    part text not null,
    name text not null,
    text text not null
);

table unique_tasks (
    key text not null,
    id bigint not null,
    until timestamp with time zone,
    claimed_at timestamp with time zone
) with (autovacuum_vacuum_threshold=1000, autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_cost_delay=0);

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

sequence id_orders increment 1024 minvalue 1024 start 1024;

sequence id_tasks increment 1024 minvalue 1024 start 1024;

alter table archive_emails add constraint archivekey_emails PRIMARY KEY (id);

alter table archive_orders add constraint archivekey_orders PRIMARY KEY (id);

alter table archive_tasks add constraint archivekey_tasks PRIMARY KEY (id);

alter table audit add constraint audit_token UNIQUE (token);

alter table audit add constraint pk_audit PRIMARY KEY (id);

alter table bucket add constraint bucket_filled_at CHECK (isfinite(filled_at));

alter table bucket add constraint bucket_tokens CHECK (((tokens >= ('-2000000000'::numeric)::double precision) AND (tokens <= ('1000000000'::numeric)::double precision)));

alter table bucket add constraint fk_bucket_queue FOREIGN KEY (queue) REFERENCES queue(name) ON DELETE CASCADE;

alter table bucket add constraint pk_bucket PRIMARY KEY (queue);

alter table dead_emails add constraint deadkey_emails PRIMARY KEY (id);

alter table dead_orders add constraint deadkey_orders PRIMARY KEY (id);

alter table dead_tasks add constraint deadkey_tasks PRIMARY KEY (id);

alter table dropped add constraint pk_dropped PRIMARY KEY (queue);

alter table floor add constraint floor_times CHECK (((reached < 'infinity'::timestamp with time zone) AND isfinite(shown)));

alter table floor add constraint pk_floor PRIMARY KEY (queue);

alter table granted add constraint granted_kind CHECK ((kind = ANY (ARRAY['producer'::text, 'consumer'::text, 'operator'::text])));

alter table granted add constraint pk_granted PRIMARY KEY (role, kind, queue);

alter table history add constraint pk_history PRIMARY KEY (minute, queue);

alter table lane_orders add constraint lanekey_orders PRIMARY KEY (lane);

alter table line_orders add constraint linekey_orders PRIMARY KEY (lane, key);

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

alter table queue_orders add constraint finite CHECK (isfinite(due_at));

alter table queue_orders add constraint key_orders PRIMARY KEY (id);

alter table queue_orders add constraint lane CHECK (((lane >= 0) AND (lane <= (64 - 1))));

alter table queue_tasks add constraint finite CHECK (isfinite(due_at));

alter table queue_tasks add constraint key_tasks PRIMARY KEY (id);

alter table queue_tasks add constraint lane CHECK (((lane >= 0) AND (lane <= (4 - 1))));

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

alter table template add constraint pk_template PRIMARY KEY (part, name);

alter table unique_tasks add constraint kept CHECK ((isfinite(until) AND (until >= '0001-01-01 00:00:00+00'::timestamp with time zone) AND (claimed_at < '6000-01-01 00:00:00+00'::timestamp with time zone)));

alter table unique_tasks add constraint uniquekey_tasks PRIMARY KEY (key);

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

CREATE INDEX age_orders ON trunkline.archive_orders USING btree (archived_at);

CREATE INDEX age_tasks ON trunkline.archive_tasks USING btree (archived_at);

CREATE UNIQUE INDEX archivekey_emails ON trunkline.archive_emails USING btree (id);

CREATE UNIQUE INDEX archivekey_orders ON trunkline.archive_orders USING btree (id);

CREATE UNIQUE INDEX archivekey_tasks ON trunkline.archive_tasks USING btree (id);

CREATE UNIQUE INDEX audit_token ON trunkline.audit USING btree (token);

CREATE UNIQUE INDEX deadkey_emails ON trunkline.dead_emails USING btree (id);

CREATE UNIQUE INDEX deadkey_orders ON trunkline.dead_orders USING btree (id);

CREATE UNIQUE INDEX deadkey_tasks ON trunkline.dead_tasks USING btree (id);

CREATE INDEX due_emails ON trunkline.queue_emails USING btree (due_at, ((id + 0)));

CREATE INDEX due_orders ON trunkline.queue_orders USING btree (due_at, ((id + 0)));

CREATE INDEX due_tasks ON trunkline.queue_tasks USING btree (lane, due_at, ((id + 0)));

CREATE UNIQUE INDEX key_emails ON trunkline.queue_emails USING btree (id);

CREATE UNIQUE INDEX key_orders ON trunkline.queue_orders USING btree (id);

CREATE UNIQUE INDEX key_tasks ON trunkline.queue_tasks USING btree (id);

CREATE UNIQUE INDEX lanekey_orders ON trunkline.lane_orders USING btree (lane);

CREATE INDEX leased_orders ON trunkline.queue_orders USING btree (due_at) WHERE ((attempt > 0) AND (error IS NULL));

CREATE UNIQUE INDEX linekey_orders ON trunkline.line_orders USING btree (lane, key);

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

CREATE UNIQUE INDEX pk_template ON trunkline.template USING btree (part, name);

CREATE UNIQUE INDEX pk_version ON trunkline.version USING btree (version);

CREATE UNIQUE INDEX pk_waiting ON trunkline.waiting USING btree (consumer);

CREATE UNIQUE INDEX pk_worker ON trunkline.worker USING btree (at, worker);

CREATE INDEX place_orders ON trunkline.queue_orders USING btree (lane, line, place, ((id + 0)));

CREATE INDEX schedule_by_next ON trunkline.schedule USING btree (next_at) WHERE (NOT paused);

CREATE INDEX schedule_by_placed ON trunkline.schedule USING btree (placed_at);

CREATE INDEX uniqueid_tasks ON trunkline.unique_tasks USING btree (id) WHERE (until IS NULL);

CREATE UNIQUE INDEX uniquekey_tasks ON trunkline.unique_tasks USING btree (key);

CREATE INDEX waiting_by_queue ON trunkline.waiting USING btree (queue);

function ack(queue text, id bigint, attempt integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off;

function ack_many(queue text, ids bigint[], attempts integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function along_lanes(queue text, holder bigint, n integer, lease interval, most integer) returns TABLE(id bigint, attempt integer, key text, enqueued_at timestamp with time zone, due_at timestamp with time zone, payload text, metadata jsonb) language plpgsql volatile set search_path=pg_catalog, pg_temp;

function alter_queue(queue text, max_attempts integer DEFAULT NULL::integer, lease interval DEFAULT NULL::interval, max_batch integer DEFAULT NULL::integer, aging interval DEFAULT NULL::interval, per_key integer DEFAULT NULL::integer, partitions integer DEFAULT NULL::integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function announced(channel text) returns boolean language sql volatile;

function apply_rights(queue text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function apply_shared_rights() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function archive(queue text, id bigint, attempt integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function archive_many(queue text, ids bigint[], attempts integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function base_type(of regtype) returns regtype language plpgsql stable set search_path=pg_catalog, pg_temp;

function build_dispatch(patience text) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp standard_conforming_strings=on check_function_bodies=off client_min_messages=warning lock_timeout=10s;

function bury(queue text, id bigint, attempt integer, reason text DEFAULT ''::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function bury_many(queue text, ids bigint[], attempts integer[], reason text DEFAULT ''::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function cancel(queue text, ids bigint[]) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function change(verb text, queue text, ids bigint[], due timestamp with time zone DEFAULT NULL::timestamp with time zone) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp jit=off;

function charge(queue text, id bigint, attempt integer, delay interval DEFAULT '00:00:00'::interval, error text DEFAULT ''::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function charge_many(queue text, ids bigint[], attempts integer[], delay interval DEFAULT '00:00:00'::interval, error text DEFAULT ''::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function check_columns(queue text, columns jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp;

function check_delay(delay interval) returns interval language plpgsql stable set search_path=pg_catalog, pg_temp;

function check_ids(ids bigint[], verb text) returns bigint[] language plpgsql immutable set search_path=pg_catalog, pg_temp;

function check_keyed(queue text) returns void language plpgsql stable set search_path=pg_catalog, pg_temp;

function check_keys(queue text, keys text[], messages integer) returns void language plpgsql stable set search_path=pg_catalog, pg_temp;

function check_lease(lease interval) returns interval language plpgsql stable set search_path=pg_catalog, pg_temp;

function check_metadata(metadata jsonb) returns jsonb language plpgsql immutable set search_path=pg_catalog, pg_temp;

function check_n(n integer) returns integer language plpgsql immutable set search_path=pg_catalog, pg_temp;

function check_owner() returns void language plpgsql stable set search_path=pg_catalog, pg_temp;

function check_priority(queue text, priority integer) returns text language plpgsql stable set search_path=pg_catalog, pg_temp;

function check_queue(queue text) returns void language plpgsql stable set search_path=pg_catalog, pg_temp;

function check_rights() returns void language plpgsql stable set search_path=pg_catalog, pg_temp;

function check_role(role regrole) returns text language plpgsql stable set search_path=pg_catalog, pg_temp;

function check_schedule(name text, expression text, zone text, missed text) returns void language plpgsql stable set search_path=pg_catalog, pg_temp standard_conforming_strings=on;

function check_settings(queue text, max_attempts integer, lease interval, max_batch integer, priorities integer, aging interval, partitions integer, per_key integer) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp;

function check_snapshot(queue text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function check_unique(queue text, messages integer, metadata jsonb[], keys text[], unique_for interval) returns void language plpgsql stable set search_path=pg_catalog, pg_temp;

function check_unique_key(unique_key text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp;

function check_wait(wait interval) returns double precision language plpgsql volatile set search_path=pg_catalog, pg_temp;

function claim_schedules(since timestamp with time zone, n integer) returns TABLE(tid tid, name text, queue text, expression text, zone text, missed text, placed boolean, next_at timestamp with time zone, clock timestamp with time zone) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off;

function clock() returns timestamp with time zone language sql volatile;

function compact(queue text, at_least bigint DEFAULT 33554432, max_pause interval DEFAULT '00:00:02'::interval, if_held boolean DEFAULT false) returns TABLE(freed bigint, refused text) language plpgsql volatile set search_path=pg_catalog, pg_temp;

function converted(queue text, parameter text, is_list boolean, texts text[] DEFAULT NULL::text[]) returns text language plpgsql stable set search_path=pg_catalog, pg_temp;

function create_queue(queue text, payload regtype DEFAULT 'bytea'::regtype, max_attempts integer DEFAULT 10, lease interval DEFAULT '00:00:30'::interval, max_batch integer DEFAULT 1024, priorities integer DEFAULT 1, aging interval DEFAULT '00:01:00'::interval, uniqueness boolean DEFAULT false, partitions integer DEFAULT 0, per_key integer DEFAULT 1) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp standard_conforming_strings=on client_min_messages=warning;

function create_queue(queue text, payload text, max_attempts integer DEFAULT 10, lease interval DEFAULT '00:00:30'::interval, max_batch integer DEFAULT 1024, priorities integer DEFAULT 1, aging interval DEFAULT '00:01:00'::interval, uniqueness boolean DEFAULT false, partitions integer DEFAULT 0, per_key integer DEFAULT 1) returns void language plpgsql volatile;

function dead_letters(queue text, after bigint DEFAULT 0, n integer DEFAULT 100) returns TABLE(id bigint, enqueued_at timestamp with time zone, dead_at timestamp with time zone, attempt integer, error text, payload text, metadata jsonb, key text) language plpgsql volatile set search_path=pg_catalog, pg_temp;

function describe_functions(queue text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp standard_conforming_strings=on;

function discard(queue text, ids bigint[]) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function discard_all(queue text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function discard_some(queue text, ids bigint[], n bigint) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off;

function do_ack_emails(ids bigint[], sizes integer[], attempts integer[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    if false then
        -- Locks the table of partitions before the rows, because a session that gives the queue
        -- more partitions also locks in this order. Later statements of this transaction may lock
        -- partitions.
        perform from trunkline."lane_emails" where false;
    end if;
    if cardinality(ids) = 1 then
        -- The usual case: the range is one whole row. This costs half of the general case.
        return query
            delete from trunkline."queue_emails" q
            where q.id = ids[1] and q.size = sizes[1] and q.attempt = attempts[1] and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning q.id, q.size, q.attempt;
        if found then
            return;
        end if;
    end if;
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with held as (
            delete from trunkline."queue_emails" q using unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.size, d.attempt as under)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_emails"(ids, sizes, attempts, true);
    end loop;
end ;

function do_ack_orders(ids bigint[], sizes integer[], attempts integer[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    if true then
        -- Locks the table of partitions before the rows, because a session that gives the queue
        -- more partitions also locks in this order. Later statements of this transaction may lock
        -- partitions.
        perform from trunkline."lane_orders" where false;
    end if;
    if cardinality(ids) = 1 then
        -- The usual case: the range is one whole row. This costs half of the general case.
        return query
            delete from trunkline."queue_orders" q
            where q.id = ids[1] and q.size = sizes[1] and q.attempt = attempts[1] and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning q.id, q.size, q.attempt;
        if found then
            return;
        end if;
    end if;
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with held as (
            delete from trunkline."queue_orders" q using unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.size, d.attempt as under)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_orders"(ids, sizes, attempts, true);
    end loop;
end ;

function do_ack_tasks(ids bigint[], sizes integer[], attempts integer[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    if false then
        -- Locks the table of partitions before the rows, because a session that gives the queue
        -- more partitions also locks in this order. Later statements of this transaction may lock
        -- partitions.
        perform from trunkline."lane_tasks" where false;
    end if;
    if cardinality(ids) = 1 then
        -- The usual case: the range is one whole row. This costs half of the general case.
        return query
            delete from trunkline."queue_tasks" q
            where q.id = ids[1] and q.size = sizes[1] and q.attempt = attempts[1] and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning q.id, q.size, q.attempt;
        if found then
            return;
        end if;
    end if;
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with held as (
            delete from trunkline."queue_tasks" q using unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.size, d.attempt as under)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_tasks"(ids, sizes, attempts, true);
    end loop;
end ;

function do_allowed_orders(n integer, locks boolean) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan row_security=on as 
#variable_conflict use_variable
declare
    clock timestamptz;
    seen record;
begin
    if locks and 100 is not null and current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        -- The snapshot may be older than the lock, and would not show the latest leases.
        raise exception 'a transaction that is % cannot dequeue from queue %, which has a limit of leased messages', current_setting('transaction_isolation'), quote_literal('orders')
            using errcode = 'invalid_transaction_state', hint = 'Begin the transaction with: begin isolation level read committed';
    end if;
    if locks and not trunkline."do_bucket_orders"() then
        return 0;
    end if;
    if 50 is not null then
        clock := clock_timestamp();
        select trunkline.tokens(b.tokens, b.filled_at, 50, 50, clock) as tokens, b.filled_at > clock as ahead
        into seen from trunkline.bucket b where b.queue = 'orders';
        if locks and seen.ahead then
            update trunkline.bucket b set tokens = seen.tokens, filled_at = clock where b.queue = 'orders';
        end if;
        n := least(n, floor(seen.tokens)::int);
    end if;
    if 100 is not null and n > 0 then
        n := least(n, 100 - trunkline."do_leased_orders"());
    end if;
    return greatest(n, 0);
end ;

function do_allowedin_orders() returns double precision language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan row_security=on as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp(); -- read before the query, as in do_leased_
    pause constant float8 := 0.25; -- the longest pause of consumers that wait for locked messages
    room float8;
    token float8;
begin
    if 100 is not null and trunkline."do_leased_orders"() >= 100 then
        room := (select extract(epoch from min(q.due_at) - clock) from trunkline."queue_orders" q
                 where q.attempt > 0 and q.error is null and q.due_at > clock);
        if trunkline."do_extending_orders"() is not null then
            -- a lease that has ended may count only until the transaction that extends leases ends
            room := least(room, pause);
        end if;
    end if;
    if 50 is not null then
        token := (select (1 - trunkline.tokens(b.tokens, b.filled_at, 50, 50, clock)) / 50::float8
                  from trunkline.bucket b where b.queue = 'orders');
    end if;
    if room is null and not coalesce(token > 0, false) and exists (
            select from pg_locks l
            where l.locktype = 'relation' and l.relation = to_regclass('trunkline."limit_orders"') and l.mode = 'ExclusiveLock' and l.granted
              and l.database = (select d.oid from pg_database d where d.datname = current_database()) and l.pid is distinct from pg_backend_pid()) then
        return pause;
    end if;
    return greatest(room, case when token > 0 then token end);
end ;

function do_along_orders(n integer, lane integer, floor timestamp with time zone, way integer, lined_n integer, INOUT to_bury integer DEFAULT NULL::integer, OUT tids tid[], OUT got integer, OUT ran_out boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz;
    at record;
    known record;
    lined text[];
    -- If keys have a rate, one call leases at most half a bucket of messages of a key, plus the
    -- refill during that time.
    most_of_key constant int := case when null::float8 is not null then
        greatest(least(ceil(null::float8 / 2 + null::float8 * extract(epoch from interval '00:00:30') / 16), 64), 1) end;
    wanted int := n;
    room int;
    bound timestamptz;
    lines_first bool := false;
    apart int := way;
    rows int;
    due timestamptz := floor;
    row_tid tid;
    next_id bigint := 0;
begin
    tids := '{}';
    got := 0;
    ran_out := false;
    perform from trunkline."lane_orders" h where h.lane = -1 - lane for update skip locked;
    if not found then
        return;
    end if;
    lined := array(select l.key from trunkline."line_orders" l where l.lane = lane);
    if lined <> '{}' then
        lines_first := n < 4 and random() < 0.25;
        wanted := n - n / 4;
    end if;
    for part in 1..2 loop
        if lines_first = (part = 1) then
            exit when lined = '{}';
            clock := clock_timestamp();
            -- Rows of one statement have the same place. So rows at the place of the first unread
            -- row may belong behind that row.
            bound := (
                select q.place - interval '1 microsecond' from trunkline."queue_orders" q
                where q.lane = lane and q.line = '' and (q.place, q.id + 0) >= (due, next_id)
                  and q.place <= clock and q.due_at <= clock
                order by q.place, q.id + 0 limit 1);
            room := least(n, got::bigint + case when lines_first and bound is not null then 1 else lined_n end);
            for known in
                select l.key, l.until, greatest((room - got) / cardinality(lined), 1) as share from trunkline."line_orders" l
                where l.lane = lane and l.until <= clock order by random()
            loop
                exit when got >= room or to_bury <= 0;
                known.share := least(known.share, room - got, most_of_key);
                at := trunkline."do_gather_orders"(known.share, known.share, true, apart, '-infinity', 0, lane, known.key, '{}', coalesce(bound, clock), to_bury);
                to_bury := at.to_bury;
                if at.got > 0 then
                    -- In the meantime the key's first message may have failed. Then the key waits for its retry.
                    continue when exists (
                        select from trunkline."line_orders" l where l.lane = lane and l.key = known.key and l.until > clock_timestamp());
                    foreach row_tid in array at.tids loop
                        tids := tids || row_tid; -- in place: a concatenation would copy all of them for each key
                    end loop;
                    got := got + at.got;
                    ran_out := at.ran_out;
                    exit when ran_out;
                    apart := greatest(way, 2);
                else
                    -- If the key's own backlog (line) is empty, the key uses the partition's backlog again. A retry
                    -- that fills the key's backlog locks it. The second statement sees what a retry has stored before
                    -- the lock.
                    perform from trunkline."line_orders" l where l.lane = lane and l.key = known.key for update skip locked;
                    -- Above read committed, the snapshot may not show rows that have entered the backlog.
                    if found and current_setting('transaction_isolation') not in ('repeatable read', 'serializable') then
                        delete from trunkline."line_orders" l
                        where l.lane = lane and l.key = known.key and l.until = known.until
                          and not exists (select from trunkline."queue_orders" q where q.lane = lane and q.line = known.key);
                    end if;
                end if;
            end loop;
            exit when ran_out or part = 2;
            lined := array(select l.key from trunkline."line_orders" l where l.lane = lane);
        else
            -- While keys wait, even a call for one message reads several rows: rows of such a key move
            -- to its backlog together.
            rows := case when lined = '{}' then least(wanted - got, 8) else 8 end;
            while got < wanted loop
                at := trunkline."do_gather_orders"(wanted - got, rows, true, apart, due, next_id, lane, '', lined, 'infinity', to_bury);
                to_bury := at.to_bury;
                exit when at.got = 0;
                tids := tids || at.tids;
                got := got + at.got;
                ran_out := at.ran_out;
                exit when ran_out;
                apart := greatest(way, 2);
                select q.place, q.id + 1 into due, next_id from trunkline."queue_orders" q where q.ctid = tids[cardinality(tids)];
                exit when not at.more;
                -- After a row that has to be split or moved, only as many rows are locked as could
                -- be used. Otherwise every such row would require reading all of them.
                rows := least(wanted - got, case when cardinality(at.tids) < rows then greatest(2 * cardinality(at.tids), 8) else 2 * rows end);
            end loop;
            exit when ran_out;
            if exists (select from trunkline."line_orders" l where l.lane = lane and l.key not in (select u.key from unnest(lined) u(key))
                       and exists (select from trunkline."queue_orders" q where q.ctid = any (tids) and l.key = any (q.keys))) then
                -- In the meantime a message of the key failed. Its retry is due before these
                -- messages, so the call returns none of them.
                tids := '{}';
                got := 0;
                return;
            end if;
        end if;
    end loop;
end ;

function do_archive_emails(ids bigint[], sizes integer[], attempts integer[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with held as (
            delete from trunkline."queue_emails" q using unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.enqueued_at, q.attempt - q.released as charged, q.size, q.payload, q.metadata,
                      trunkline."do_kept_emails"(q.*) as own, d.attempt as under,
                      exists (select from trunkline."archive_emails" a where a.id >= q.id and a.id < q.id + q.size) as is_there
        ), kept as (
            insert into trunkline."archive_emails" (id, enqueued_at, attempt, payload, metadata, own)
            select case when h.is_there then - h.id - m.k else h.id + m.k end, h.enqueued_at, h.charged, m.payload, m.metadata,
                   trunkline."do_keptof_emails"(h.own, m.k)
            from held h, lateral (select generate_series(0, h.size - 1) as k, unnest(h.payload) as payload, unnest(h.metadata) as metadata) m
            where m.k is not null)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_emails"(ids, sizes, attempts, true);
    end loop;
end ;

function do_archive_orders(ids bigint[], sizes integer[], attempts integer[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with held as (
            delete from trunkline."queue_orders" q using unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.enqueued_at, q.attempt - q.released as charged, q.size, q.payload, q.metadata,
                      trunkline."do_kept_orders"(q.*) as own, d.attempt as under,
                      exists (select from trunkline."archive_orders" a where a.id >= q.id and a.id < q.id + q.size) as is_there
        ), kept as (
            insert into trunkline."archive_orders" (id, enqueued_at, attempt, payload, metadata, own)
            select case when h.is_there then - h.id - m.k else h.id + m.k end, h.enqueued_at, h.charged, m.payload, m.metadata,
                   trunkline."do_keptof_orders"(h.own, m.k)
            from held h, lateral (select generate_series(0, h.size - 1) as k, unnest(h.payload) as payload, unnest(h.metadata) as metadata) m
            where m.k is not null)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_orders"(ids, sizes, attempts, true);
    end loop;
end ;

function do_archive_tasks(ids bigint[], sizes integer[], attempts integer[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with held as (
            delete from trunkline."queue_tasks" q using unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.enqueued_at, q.attempt - q.released as charged, q.size, q.payload, q.metadata,
                      trunkline."do_kept_tasks"(q.*) as own, d.attempt as under,
                      exists (select from trunkline."archive_tasks" a where a.id >= q.id and a.id < q.id + q.size) as is_there
        ), kept as (
            insert into trunkline."archive_tasks" (id, enqueued_at, attempt, payload, metadata, own)
            select case when h.is_there then - h.id - m.k else h.id + m.k end, h.enqueued_at, h.charged, m.payload, m.metadata,
                   trunkline."do_keptof_tasks"(h.own, m.k)
            from held h, lateral (select generate_series(0, h.size - 1) as k, unnest(h.payload) as payload, unnest(h.metadata) as metadata) m
            where m.k is not null)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_tasks"(ids, sizes, attempts, true);
    end loop;
end ;

function do_back_emails(id bigint, enqueued_at timestamp with time zone, attempt integer, released integer, error text, size integer, payload jsonb[], metadata jsonb[], own jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan DateStyle=ISO IntervalStyle=postgres TimeZone=UTC lc_monetary=C as 
#variable_conflict use_variable
declare
    named text;
    restored text;
    stored bigint;
begin
    if own is not null then
        select string_agg(quote_ident(a.attname), ', ' order by a.attnum),
               -- Converts values of domains by a function: a cast to a domain over varchar(3) would
               -- shorten the value.
               string_agg(format(case when t.typtype = 'd' then '(trunkline.payload_as($9 ->> %L, null::%s[]))[1]' else '($9 ->> %L)::%s' end,
                                 a.attname, format_type(a.atttypid, -1)), ', ' order by a.attnum)
        into named, restored from pg_attribute a join pg_type t on t.oid = a.atttypid
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
    get diagnostics stored = row_count;
    if stored = 0 then
        perform trunkline.not_stored('emails', size, 0);
    end if;
end ;

function do_back_orders(id bigint, enqueued_at timestamp with time zone, attempt integer, released integer, error text, size integer, payload payload_orders[], metadata jsonb[], own jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan DateStyle=ISO IntervalStyle=postgres TimeZone=UTC lc_monetary=C as 
#variable_conflict use_variable
declare
    named text;
    restored text;
    stored bigint;
    all_keys text[];
begin
    -- The row may come from another server, or from the time before the queue got more partitions.
    own := own || '{"lane": "-1"}';
    -- A row from another shard has its keys as a JSON array. A single message has them as the text
    -- of an SQL array.
    all_keys := case when jsonb_typeof(own -> 'keys') = 'array' then array(select jsonb_array_elements_text(own -> 'keys'))
                     else (own ->> 'keys')::text[] end;
    own := own || jsonb_build_object('keys', all_keys::text);
    if size > 1 and exists (
        select from unnest(all_keys) k(key) where trunkline.lane_of(k.key, 64) <> trunkline.lane_of(all_keys[1], 64)) then
        for k in 1..size loop
            perform trunkline."do_back_orders"(id + k - 1, enqueued_at, attempt, released, error, 1, payload[k:k], metadata[k:k],
                                         own || jsonb_build_object('keys', all_keys[k:k]::text));
        end loop;
        return;
    end if;
    if own is not null then
        select string_agg(quote_ident(a.attname), ', ' order by a.attnum),
               -- Converts values of domains by a function: a cast to a domain over varchar(3) would
               -- shorten the value.
               string_agg(format(case when t.typtype = 'd' then '(trunkline.payload_as($9 ->> %L, null::%s[]))[1]' else '($9 ->> %L)::%s' end,
                                 a.attname, format_type(a.atttypid, -1)), ', ' order by a.attnum)
        into named, restored from pg_attribute a join pg_type t on t.oid = a.atttypid
        where a.attrelid = 'trunkline."queue_orders"'::regclass and a.attnum > 0 and not a.attisdropped
          and a.attgenerated = '' and a.attidentity = '' and own ? a.attname::text
          and a.attname <> all (array['id', 'enqueued_at', 'due_at', 'attempt', 'released', 'size', 'error', 'payload', 'metadata']);
    end if;
    if named is null then
        insert into trunkline."queue_orders" (id, enqueued_at, attempt, released, error, size, payload, metadata)
        values (id, enqueued_at, attempt, released, error, size, payload, metadata);
    else
        execute format(
            'insert into trunkline.%I (id, enqueued_at, attempt, released, error, size, payload, metadata, %s)
             values ($1, $2, $3, $4, $5, $6, $7, $8, %s)', 'queue_' || 'orders', named, restored)
            using id, enqueued_at, attempt, released, error, size, payload, metadata, own;
    end if;
    get diagnostics stored = row_count;
    if stored = 0 then
        perform trunkline.not_stored('orders', size, 0);
    end if;
end ;

function do_back_tasks(id bigint, enqueued_at timestamp with time zone, attempt integer, released integer, error text, size integer, payload text[], metadata jsonb[], own jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan DateStyle=ISO IntervalStyle=postgres TimeZone=UTC lc_monetary=C as 
#variable_conflict use_variable
declare
    named text;
    restored text;
    stored bigint;
begin
    if own is not null then
        select string_agg(quote_ident(a.attname), ', ' order by a.attnum),
               -- Converts values of domains by a function: a cast to a domain over varchar(3) would
               -- shorten the value.
               string_agg(format(case when t.typtype = 'd' then '(trunkline.payload_as($9 ->> %L, null::%s[]))[1]' else '($9 ->> %L)::%s' end,
                                 a.attname, format_type(a.atttypid, -1)), ', ' order by a.attnum)
        into named, restored from pg_attribute a join pg_type t on t.oid = a.atttypid
        where a.attrelid = 'trunkline."queue_tasks"'::regclass and a.attnum > 0 and not a.attisdropped
          and a.attgenerated = '' and a.attidentity = '' and own ? a.attname::text
          and a.attname <> all (array['id', 'enqueued_at', 'due_at', 'attempt', 'released', 'size', 'error', 'payload', 'metadata']);
    end if;
    if named is null then
        insert into trunkline."queue_tasks" (id, enqueued_at, attempt, released, error, size, payload, metadata)
        values (id, enqueued_at, attempt, released, error, size, payload, metadata);
    else
        execute format(
            'insert into trunkline.%I (id, enqueued_at, attempt, released, error, size, payload, metadata, %s)
             values ($1, $2, $3, $4, $5, $6, $7, $8, %s)', 'queue_' || 'tasks', named, restored)
            using id, enqueued_at, attempt, released, error, size, payload, metadata, own;
    end if;
    get diagnostics stored = row_count;
    if stored = 0 then
        perform trunkline.not_stored('tasks', size, 0);
    end if;
end ;

function do_batch_emails(payloads jsonb[], delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], due timestamp with time zone DEFAULT NULL::timestamp with time zone) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    stored bigint;
begin
    if delay is null or delay < '0' or delay > '36500 days' then
        raise exception 'a delay of % is out of bounds', coalesce(delay::text, 'null') using errcode = 'invalid_parameter_value',
            hint = 'A delay is at least zero and at most 36500 days.';
    elsif payloads is null then
        raise exception 'the payloads of queue % are null', quote_literal('emails') using errcode = 'null_value_not_allowed',
            hint = 'Pass an array; an empty one enqueues nothing.';
    elsif array_ndims(payloads) > 1 then
        raise exception 'the payloads must be an array of one dimension, not of %', array_ndims(payloads)
            using errcode = 'array_subscript_error', hint = 'Pass an array of one dimension.';
    end if;
    payloads := payloads[:];
    if metadata is not null then
        if cardinality(metadata) <> cardinality(payloads) then
            raise exception 'the call has % payloads, but metadata for %', cardinality(payloads), cardinality(metadata)
                using errcode = 'invalid_parameter_value', hint = 'Pass one for each payload, or null for a payload without one.';
        end if;
        perform trunkline.check_metadata(m) from unnest(metadata) m;
    end if;
    return query
        with message as (
            select m.nr, m.metadata, trunkline.payload_bytes('emails', pg_column_size(m.payload)) + coalesce(pg_column_size(m.metadata), 0) as bytes
            from (select generate_series(1, cardinality(payloads)) as nr, unnest(payloads) as payload, unnest(metadata) as metadata) m
        ), placed as (
            select m.*, (sum(m.bytes) over (order by m.nr) - m.bytes)::bigint / 65536 as page from message m
        ), batch as (
            insert into trunkline."queue_emails" (due_at, size, payload, metadata)
            select greatest(greatest(trunkline.clock(), due) + delay, trunkline.clock()), count(*),
                   array(select payloads[k] from generate_series(min(p.nr), max(p.nr)) k),
                   case when count(p.metadata) > 0 then array_agg(p.metadata order by p.nr) filter (where metadata is not null) end
            from placed p group by p.page, p.bytes > 65536, (p.nr - 1) / 1024 order by min(p.nr)
            returning id, size
        )
        select b.id + k from batch b, generate_series(0, b.size - 1) k order by b.id, k;
    get diagnostics stored = row_count;
    if stored <> cardinality(payloads) then
        perform trunkline.not_stored('emails', cardinality(payloads), stored);
    end if;
    if cardinality(payloads) > 0 and trunkline.announced('trunkline.emails') then
        perform pg_notify('trunkline.emails', '');
    end if;
end ;

function do_batch_orders(payloads payload_orders[], delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], due timestamp with time zone DEFAULT NULL::timestamp with time zone) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.check_keys('orders', null, cardinality(payloads));
end ;

function do_batch_tasks(payloads text[], delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], due timestamp with time zone DEFAULT NULL::timestamp with time zone, priority integer DEFAULT 0) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    stored bigint;
begin
    if delay is null or delay < '0' or delay > '36500 days' then
        raise exception 'a delay of % is out of bounds', coalesce(delay::text, 'null') using errcode = 'invalid_parameter_value',
            hint = 'A delay is at least zero and at most 36500 days.';
    elsif payloads is null then
        raise exception 'the payloads of queue % are null', quote_literal('tasks') using errcode = 'null_value_not_allowed',
            hint = 'Pass an array; an empty one enqueues nothing.';
    elsif array_ndims(payloads) > 1 then
        raise exception 'the payloads must be an array of one dimension, not of %', array_ndims(payloads)
            using errcode = 'array_subscript_error', hint = 'Pass an array of one dimension.';
    end if;
    payloads := payloads[:];
    if metadata is not null then
        if cardinality(metadata) <> cardinality(payloads) then
            raise exception 'the call has % payloads, but metadata for %', cardinality(payloads), cardinality(metadata)
                using errcode = 'invalid_parameter_value', hint = 'Pass one for each payload, or null for a payload without one.';
        end if;
        perform trunkline.check_metadata(m) from unnest(metadata) m;
    end if;
    return query
        with message as (
            select m.nr, m.metadata, trunkline.payload_bytes('tasks', pg_column_size(m.payload)) + coalesce(pg_column_size(m.metadata), 0) as bytes
            from (select generate_series(1, cardinality(payloads)) as nr, unnest(payloads) as payload, unnest(metadata) as metadata) m
        ), placed as (
            select m.*, (sum(m.bytes) over (order by m.nr) - m.bytes)::bigint / 65536 as page from message m
        ), batch as (
            insert into trunkline."queue_tasks" (due_at, size, payload, metadata, lane)
            select greatest(greatest(trunkline.clock(), due) + delay, trunkline.clock()), count(*),
                   array(select payloads[k] from generate_series(min(p.nr), max(p.nr)) k),
                   case when count(p.metadata) > 0 then array_agg(p.metadata order by p.nr) filter (where metadata is not null) end, priority
            from placed p group by p.page, p.bytes > 65536, (p.nr - 1) / 1024 order by min(p.nr)
            returning id, size
        )
        select b.id + k from batch b, generate_series(0, b.size - 1) k order by b.id, k;
    get diagnostics stored = row_count;
    if stored <> cardinality(payloads) then
        perform trunkline.not_stored('tasks', cardinality(payloads), stored);
    end if;
    if cardinality(payloads) > 0 and trunkline.announced('trunkline.tasks') then
        perform pg_notify('trunkline.tasks', '');
    end if;
end ;

function do_behind_orders(ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
begin
    -- If a message of a key has failed, the key has its own backlog. The query reads this backlog once for all messages
    -- of the key.
    return (
        select array_agg(m.id order by m.id)
        from (select q.lane, q.key, max(q.place) as place, array_agg(q.id) as ids, array_agg(q.place) as places
              from unnest(ids) i(id), lateral (
                  select i.id, r.lane, r.place, r.keys[(i.id - r.id)::int + 1] as key, i.id - r.id < r.size as is_met from trunkline."queue_orders" r
                  where r.id <= i.id and r.id >= i.id / 1024 * 1024 order by r.id desc limit 1) q
              where q.is_met group by q.lane, q.key) k,
             lateral (
                  select r.place, r.id from trunkline."queue_orders" r
                  where r.lane = k.lane and r.line = k.key and r.place <= k.place and r.error is not null
                  order by r.place, r.id + 0 limit 1) f,
             unnest(k.ids, k.places) m(id, place)
        where (f.place, f.id) < (m.place, m.id));
end ;

function do_bucket_orders() returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp lock_timeout=50ms as 
begin
    lock table trunkline."limit_orders" in exclusive mode;
    return true;
exception when lock_not_available or undefined_table then
    return false; -- the limits may have been removed in the meantime; then the next dequeue finds no limits
end ;

function do_bury_emails(ids bigint[], sizes integer[], attempts integer[], reasons text[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with held as (
            delete from trunkline."queue_emails" q using unnest(ids, sizes, attempts, reasons) with ordinality d(id, size, attempt, reason, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.enqueued_at, q.attempt, q.released, q.size, q.payload, q.metadata,
                      trunkline."do_kept_emails"(q.*) as own, d.reason, d.attempt as under
        ), dead as (
            insert into trunkline."dead_emails" (id, enqueued_at, attempt, released, error, payload, metadata, own)
            select h.id + m.k, h.enqueued_at, h.attempt - h.released, h.released, coalesce(h.reason, ''), m.payload, m.metadata,
                   trunkline."do_keptof_emails"(h.own, m.k)
            from held h, lateral (select generate_series(0, h.size - 1) as k, unnest(h.payload) as payload, unnest(h.metadata) as metadata) m
            where m.k is not null)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        reasons := array(select reasons[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_emails"(ids, sizes, attempts, true);
    end loop;
end ;

function do_bury_orders(ids bigint[], sizes integer[], attempts integer[], reasons text[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with held as (
            delete from trunkline."queue_orders" q using unnest(ids, sizes, attempts, reasons) with ordinality d(id, size, attempt, reason, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.enqueued_at, q.attempt, q.released, q.size, q.payload, q.metadata,
                      trunkline."do_kept_orders"(q.*) as own, d.reason, d.attempt as under
        ), dead as (
            insert into trunkline."dead_orders" (id, enqueued_at, attempt, released, error, payload, metadata, own)
            select h.id + m.k, h.enqueued_at, h.attempt - h.released, h.released, coalesce(h.reason, ''), m.payload, m.metadata,
                   trunkline."do_keptof_orders"(h.own, m.k)
            from held h, lateral (select generate_series(0, h.size - 1) as k, unnest(h.payload) as payload, unnest(h.metadata) as metadata) m
            where m.k is not null)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        reasons := array(select reasons[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_orders"(ids, sizes, attempts, true);
    end loop;
end ;

function do_bury_tasks(ids bigint[], sizes integer[], attempts integer[], reasons text[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with held as (
            delete from trunkline."queue_tasks" q using unnest(ids, sizes, attempts, reasons) with ordinality d(id, size, attempt, reason, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.enqueued_at, q.attempt, q.released, q.size, q.payload, q.metadata,
                      trunkline."do_kept_tasks"(q.*) as own, d.reason, d.attempt as under
        ), dead as (
            insert into trunkline."dead_tasks" (id, enqueued_at, attempt, released, error, payload, metadata, own)
            select h.id + m.k, h.enqueued_at, h.attempt - h.released, h.released, coalesce(h.reason, ''), m.payload, m.metadata,
                   trunkline."do_keptof_tasks"(h.own, m.k)
            from held h, lateral (select generate_series(0, h.size - 1) as k, unnest(h.payload) as payload, unnest(h.metadata) as metadata) m
            where m.k is not null)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        reasons := array(select reasons[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_tasks"(ids, sizes, attempts, true);
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

function do_cancel_orders(ids bigint[]) returns TABLE(id bigint, done boolean) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    picked record;
begin
    picked := trunkline."do_pick_orders"(ids, true);
    return query
        with gone as (
            delete from trunkline."queue_orders" q using unnest(picked.first, picked.sizes) d(id, size)
            where q.id >= d.id and q.id < d.id + d.size
            returning q.id, q.size)
        select g.id + k, true from gone g, generate_series(0, g.size - 1) k;
    return query select b, false from unnest(picked.busy) b;
end ;

function do_cancel_tasks(ids bigint[]) returns TABLE(id bigint, done boolean) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    picked record;
begin
    picked := trunkline."do_pick_tasks"(ids, true);
    return query
        with gone as (
            delete from trunkline."queue_tasks" q using unnest(picked.first, picked.sizes) d(id, size)
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
                -- Another session has locked the row, or has split it in the meantime. Look again
                -- in a fresh snapshot, before the next row: sessions that carve lock rows in the
                -- order of their ids.
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

function do_carve_orders(ids bigint[], sizes integer[], attempts integer[], leased boolean) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    r trunkline."queue_orders"%rowtype;
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
                     lateral (select q.id, q.size, q.attempt from trunkline."queue_orders" q
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
                select * into r from trunkline."queue_orders" q where q.id = wide.id for update;
            else
                select * into r from trunkline."queue_orders" q where q.id = wide.id for update skip locked;
                continue when not found and not leased;
            end if;
            if not found or r.size <> wide.size then
                -- Another session has locked the row, or has split it in the meantime. Look again
                -- in a fresh snapshot, before the next row: sessions that carve lock rows in the
                -- order of their ids.
                if not found and exists (select from trunkline."queue_orders" q where q.id = wide.id and q.size = wide.size) then
                    perform pg_sleep(pause);
                    waited := waited + pause;
                    pause := least(2 * pause, 0.02);
                end if;
                moved := true;
                exit;
            elsif r.attempt = wide.attempt and (not leased or r.error is null and r.due_at > clock_timestamp()) then
                perform trunkline."do_split_orders"(r.id, wide.cuts);
            end if;
        end loop;
        exit when not moved;
    end loop;
end ;

function do_carve_tasks(ids bigint[], sizes integer[], attempts integer[], leased boolean) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    r trunkline."queue_tasks"%rowtype;
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
                     lateral (select q.id, q.size, q.attempt from trunkline."queue_tasks" q
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
                select * into r from trunkline."queue_tasks" q where q.id = wide.id for update;
            else
                select * into r from trunkline."queue_tasks" q where q.id = wide.id for update skip locked;
                continue when not found and not leased;
            end if;
            if not found or r.size <> wide.size then
                -- Another session has locked the row, or has split it in the meantime. Look again
                -- in a fresh snapshot, before the next row: sessions that carve lock rows in the
                -- order of their ids.
                if not found and exists (select from trunkline."queue_tasks" q where q.id = wide.id and q.size = wide.size) then
                    perform pg_sleep(pause);
                    waited := waited + pause;
                    pause := least(2 * pause, 0.02);
                end if;
                moved := true;
                exit;
            elsif r.attempt = wide.attempt and (not leased or r.error is null and r.due_at > clock_timestamp()) then
                perform trunkline."do_split_tasks"(r.id, wide.cuts);
            end if;
        end loop;
        exit when not moved;
    end loop;
end ;

function do_charge_emails(ids bigint[], sizes integer[], attempts integer[], delays interval[], errors text[]) returns TABLE(id bigint, size integer, attempt integer, dead boolean) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with failed as materialized (
            select d.nr, q.ctid as tid, q.attempt as under, q.attempt + 1 as attempt,
                   d.delay is null or q.attempt + 1 - q.released >= 10 as spent, d.delay, d.error
            from unnest(ids, sizes, attempts, delays, errors) with ordinality d(id, size, attempt, delay, error, nr)
            join trunkline."queue_emails" q
              on q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size and q.attempt = d.attempt
             and (q.attempt = 0 or q.error is not null or q.due_at <= clock_timestamp())
            for update of q skip locked
        ), again as (
            update trunkline."queue_emails" q
            set due_at = greatest(trunkline.clock() + f.delay, trunkline.clock()), attempt = f.attempt, error = coalesce(f.error, '')
            from failed f where q.ctid = f.tid and not f.spent
            returning f.nr, q.id, q.size, f.under
        ), gone as (
            delete from trunkline."queue_emails" q using failed f where q.ctid = f.tid and f.spent
            returning f.nr, q.id, q.enqueued_at, q.size, q.payload, q.metadata, trunkline."do_kept_emails"(q.*) as own,
                      f.under, f.attempt - q.released as charged, q.released, f.error as reason
        ), dead as (
            insert into trunkline."dead_emails" (id, enqueued_at, attempt, released, error, payload, metadata, own)
            select g.id + m.k, g.enqueued_at, g.charged, g.released, coalesce(g.reason, ''), m.payload, m.metadata, trunkline."do_keptof_emails"(g.own, m.k)
            from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m
            where m.k is not null
        ), held as (
            select a.nr, a.id, a.size, a.under, false as dead from again a union all select g.nr, g.id, g.size, g.under, true from gone g)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               array_agg(h.dead) as died, coalesce(sum(h.size), 0) as size
        into met from held h;
        -- Reads the setting from the table, because it may have changed while the call waited for a
        -- lock.
        if false and (select q.per_key = 1 from trunkline.queue q where q.name = 'emails') then
            perform trunkline."do_hold_emails"(met.ids, met.sizes);
        end if;
        return query select * from unnest(met.ids, met.sizes, met.attempts, met.died);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has ended or is leased again, or shares its row with
        -- messages that the call does not name. In the last case the row is split, and the next
        -- pass finds the message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        delays := array(select delays[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        errors := array(select errors[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_emails"(ids, sizes, attempts, false);
    end loop;
end ;

function do_charge_orders(ids bigint[], sizes integer[], attempts integer[], delays interval[], errors text[]) returns TABLE(id bigint, size integer, attempt integer, dead boolean) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with failed as materialized (
            select d.nr, q.ctid as tid, q.attempt as under, q.attempt + 1 as attempt,
                   d.delay is null or q.attempt + 1 - q.released >= 10 as spent, d.delay, d.error
            from unnest(ids, sizes, attempts, delays, errors) with ordinality d(id, size, attempt, delay, error, nr)
            join trunkline."queue_orders" q
              on q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size and q.attempt = d.attempt
             and (q.attempt = 0 or q.error is not null or q.due_at <= clock_timestamp())
            for update of q skip locked
        ), again as (
            update trunkline."queue_orders" q
            set due_at = greatest(trunkline.clock() + f.delay, trunkline.clock()), attempt = f.attempt, error = coalesce(f.error, '')
            from failed f where q.ctid = f.tid and not f.spent
            returning f.nr, q.id, q.size, f.under
        ), gone as (
            delete from trunkline."queue_orders" q using failed f where q.ctid = f.tid and f.spent
            returning f.nr, q.id, q.enqueued_at, q.size, q.payload, q.metadata, trunkline."do_kept_orders"(q.*) as own,
                      f.under, f.attempt - q.released as charged, q.released, f.error as reason
        ), dead as (
            insert into trunkline."dead_orders" (id, enqueued_at, attempt, released, error, payload, metadata, own)
            select g.id + m.k, g.enqueued_at, g.charged, g.released, coalesce(g.reason, ''), m.payload, m.metadata, trunkline."do_keptof_orders"(g.own, m.k)
            from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m
            where m.k is not null
        ), held as (
            select a.nr, a.id, a.size, a.under, false as dead from again a union all select g.nr, g.id, g.size, g.under, true from gone g)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               array_agg(h.dead) as died, coalesce(sum(h.size), 0) as size
        into met from held h;
        -- Reads the setting from the table, because it may have changed while the call waited for a
        -- lock.
        if true and (select q.per_key = 1 from trunkline.queue q where q.name = 'orders') then
            perform trunkline."do_hold_orders"(met.ids, met.sizes);
        end if;
        return query select * from unnest(met.ids, met.sizes, met.attempts, met.died);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has ended or is leased again, or shares its row with
        -- messages that the call does not name. In the last case the row is split, and the next
        -- pass finds the message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        delays := array(select delays[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        errors := array(select errors[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_orders"(ids, sizes, attempts, false);
    end loop;
end ;

function do_charge_tasks(ids bigint[], sizes integer[], attempts integer[], delays interval[], errors text[]) returns TABLE(id bigint, size integer, attempt integer, dead boolean) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with failed as materialized (
            select d.nr, q.ctid as tid, q.attempt as under, q.attempt + 1 as attempt,
                   d.delay is null or q.attempt + 1 - q.released >= 10 as spent, d.delay, d.error
            from unnest(ids, sizes, attempts, delays, errors) with ordinality d(id, size, attempt, delay, error, nr)
            join trunkline."queue_tasks" q
              on q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size and q.attempt = d.attempt
             and (q.attempt = 0 or q.error is not null or q.due_at <= clock_timestamp())
            for update of q skip locked
        ), again as (
            update trunkline."queue_tasks" q
            set due_at = greatest(trunkline.clock() + f.delay, trunkline.clock()), attempt = f.attempt, error = coalesce(f.error, '')
            from failed f where q.ctid = f.tid and not f.spent
            returning f.nr, q.id, q.size, f.under
        ), gone as (
            delete from trunkline."queue_tasks" q using failed f where q.ctid = f.tid and f.spent
            returning f.nr, q.id, q.enqueued_at, q.size, q.payload, q.metadata, trunkline."do_kept_tasks"(q.*) as own,
                      f.under, f.attempt - q.released as charged, q.released, f.error as reason
        ), dead as (
            insert into trunkline."dead_tasks" (id, enqueued_at, attempt, released, error, payload, metadata, own)
            select g.id + m.k, g.enqueued_at, g.charged, g.released, coalesce(g.reason, ''), m.payload, m.metadata, trunkline."do_keptof_tasks"(g.own, m.k)
            from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m
            where m.k is not null
        ), held as (
            select a.nr, a.id, a.size, a.under, false as dead from again a union all select g.nr, g.id, g.size, g.under, true from gone g)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               array_agg(h.dead) as died, coalesce(sum(h.size), 0) as size
        into met from held h;
        -- Reads the setting from the table, because it may have changed while the call waited for a
        -- lock.
        if false and (select q.per_key = 1 from trunkline.queue q where q.name = 'tasks') then
            perform trunkline."do_hold_tasks"(met.ids, met.sizes);
        end if;
        return query select * from unnest(met.ids, met.sizes, met.attempts, met.died);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has ended or is leased again, or shares its row with
        -- messages that the call does not name. In the last case the row is split, and the next
        -- pass finds the message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        delays := array(select delays[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        errors := array(select errors[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_tasks"(ids, sizes, attempts, false);
    end loop;
end ;

function do_cut_emails(n integer, floor timestamp with time zone) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
begin
    if false then
        n := trunkline."do_allowed_emails"(n, false);
    end if;
    perform trunkline."do_gather_emails"(n, 1, true, 0, floor, 0);
end ;

function do_cut_orders(n integer, floor timestamp with time zone) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.refuse_keys('orders');
end ;

function do_cut_tasks(n integer, floor timestamp with time zone[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    at record;
    turn record;
    dues timestamptz[] := floor;
    next_ids bigint[] := array_fill(0::bigint, array[4]);
    to_bury int;
begin
    if false then
        n := trunkline."do_allowed_tasks"(n, false);
    end if;
    while n > 0 and not false loop
        turn := trunkline."do_turn_tasks"(dues, next_ids);
        exit when turn.lane is null;
        at := trunkline."do_gather_tasks"(n, 1, true, 0, dues[turn.lane + 1], next_ids[turn.lane + 1], turn.lane, turn.bound, to_bury);
        to_bury := at.to_bury;
        exit when at.got > 0 or to_bury <= 0;
        -- Passes over the rows that other sessions hold: see do_take_.
        dues[turn.lane + 1] := case when at.more then at.due else turn.bound end;
        next_ids[turn.lane + 1] := case when at.more then at.id else 9223372036854775807 end;
    end loop;
end ;

function do_expire_emails(tids tid[], INOUT to_bury integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
begin
    with weighed as (
        select d.tid, q.size + pg_column_size(q.payload) / 8192 as weight, d.nr
        from unnest(tids) with ordinality d(tid, nr) join trunkline."queue_emails" q on q.ctid = d.tid
    ), chosen as materialized (
        select w.tid, w.weight, sum(w.weight) over (order by w.nr) - w.weight as before from weighed w
    ), gone as (
        delete from trunkline."queue_emails" q using chosen c where q.ctid = c.tid and c.before < coalesce(to_bury, 4096)
        returning q.id, q.enqueued_at, q.attempt, q.released, q.error, q.size, q.payload, q.metadata, trunkline."do_kept_emails"(q.*) as own, c.weight
    ), buried as (
        insert into trunkline."dead_emails" (id, enqueued_at, attempt, released, error, payload, metadata, own)
        select g.id + m.k, g.enqueued_at, g.attempt - g.released, g.released, coalesce(g.error, 'the lease of the last attempt expired'),
               m.payload, m.metadata, trunkline."do_keptof_emails"(g.own, m.k)
        from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m
        where m.k is not null
    )
    select coalesce(to_bury, 4096) - coalesce(8 + sum(g.weight), 0) into to_bury from gone g;
end ;

function do_expire_orders(tids tid[], INOUT to_bury integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
begin
    with weighed as (
        select d.tid, q.size + pg_column_size(q.payload) / 8192 as weight, d.nr
        from unnest(tids) with ordinality d(tid, nr) join trunkline."queue_orders" q on q.ctid = d.tid
    ), chosen as materialized (
        select w.tid, w.weight, sum(w.weight) over (order by w.nr) - w.weight as before from weighed w
    ), gone as (
        delete from trunkline."queue_orders" q using chosen c where q.ctid = c.tid and c.before < coalesce(to_bury, 4096)
        returning q.id, q.enqueued_at, q.attempt, q.released, q.error, q.size, q.payload, q.metadata, trunkline."do_kept_orders"(q.*) as own, c.weight
    ), buried as (
        insert into trunkline."dead_orders" (id, enqueued_at, attempt, released, error, payload, metadata, own)
        select g.id + m.k, g.enqueued_at, g.attempt - g.released, g.released, coalesce(g.error, 'the lease of the last attempt expired'),
               m.payload, m.metadata, trunkline."do_keptof_orders"(g.own, m.k)
        from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m
        where m.k is not null
    )
    select coalesce(to_bury, 4096) - coalesce(8 + sum(g.weight), 0) into to_bury from gone g;
end ;

function do_expire_tasks(tids tid[], INOUT to_bury integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
begin
    with weighed as (
        select d.tid, q.size + pg_column_size(q.payload) / 8192 as weight, d.nr
        from unnest(tids) with ordinality d(tid, nr) join trunkline."queue_tasks" q on q.ctid = d.tid
    ), chosen as materialized (
        select w.tid, w.weight, sum(w.weight) over (order by w.nr) - w.weight as before from weighed w
    ), gone as (
        delete from trunkline."queue_tasks" q using chosen c where q.ctid = c.tid and c.before < coalesce(to_bury, 4096)
        returning q.id, q.enqueued_at, q.attempt, q.released, q.error, q.size, q.payload, q.metadata, trunkline."do_kept_tasks"(q.*) as own, c.weight
    ), buried as (
        insert into trunkline."dead_tasks" (id, enqueued_at, attempt, released, error, payload, metadata, own)
        select g.id + m.k, g.enqueued_at, g.attempt - g.released, g.released, coalesce(g.error, 'the lease of the last attempt expired'),
               m.payload, m.metadata, trunkline."do_keptof_tasks"(g.own, m.k)
        from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m
        where m.k is not null
    )
    select coalesce(to_bury, 4096) - coalesce(8 + sum(g.weight), 0) into to_bury from gone g;
end ;

function do_extend_emails(ids bigint[], sizes integer[], attempts integer[], lease interval) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
    holders text[];
begin
    if null is not null then
        -- Until the commit, other sessions see the earlier end of the lease. This lock shows them
        -- the extension: see do_extending_.
        begin
            perform from trunkline."limit_emails" where false;
        exception when undefined_table then -- the limits were removed while the call waited
        end;
    end if;
    if false then
        -- This function updates the partitions of these leases last. It locks the table of
        -- partitions first, because a session that gives the queue more partitions locks partitions
        -- before rows.
        holders := array(select h.lane || ' ' || h.holder from trunkline."lane_emails" h where h.holder is not null);
    end if;
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with held as (
            update trunkline."queue_emails" q set due_at = trunkline.clock() + trunkline.check_lease(lease)
            from unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.size, d.attempt as under)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        if false then
            perform trunkline."do_keep_emails"(met.ids, lease, holders);
        end if;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_emails"(ids, sizes, attempts, true);
    end loop;
end ;

function do_extend_orders(ids bigint[], sizes integer[], attempts integer[], lease interval) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
    holders text[];
begin
    if 100 is not null then
        -- Until the commit, other sessions see the earlier end of the lease. This lock shows them
        -- the extension: see do_extending_.
        begin
            perform from trunkline."limit_orders" where false;
        exception when undefined_table then -- the limits were removed while the call waited
        end;
    end if;
    if true then
        -- This function updates the partitions of these leases last. It locks the table of
        -- partitions first, because a session that gives the queue more partitions locks partitions
        -- before rows.
        holders := array(select h.lane || ' ' || h.holder from trunkline."lane_orders" h where h.holder is not null);
    end if;
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with held as (
            update trunkline."queue_orders" q set due_at = trunkline.clock() + trunkline.check_lease(lease)
            from unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.size, d.attempt as under)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        if true then
            perform trunkline."do_keep_orders"(met.ids, lease, holders);
        end if;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_orders"(ids, sizes, attempts, true);
    end loop;
end ;

function do_extend_tasks(ids bigint[], sizes integer[], attempts integer[], lease interval) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
    holders text[];
begin
    if null is not null then
        -- Until the commit, other sessions see the earlier end of the lease. This lock shows them
        -- the extension: see do_extending_.
        begin
            perform from trunkline."limit_tasks" where false;
        exception when undefined_table then -- the limits were removed while the call waited
        end;
    end if;
    if false then
        -- This function updates the partitions of these leases last. It locks the table of
        -- partitions first, because a session that gives the queue more partitions locks partitions
        -- before rows.
        holders := array(select h.lane || ' ' || h.holder from trunkline."lane_tasks" h where h.holder is not null);
    end if;
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with held as (
            update trunkline."queue_tasks" q set due_at = trunkline.clock() + trunkline.check_lease(lease)
            from unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.size, d.attempt as under)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        if false then
            perform trunkline."do_keep_tasks"(met.ids, lease, holders);
        end if;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_tasks"(ids, sizes, attempts, true);
    end loop;
end ;

function do_extending_orders() returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp jit=off as 
begin
    return (
        select min(coalesce((select a.xact_start from pg_stat_activity a where a.pid = h.pid), '-infinity'))
        from (select min(l.pid) as pid from pg_locks l
              where l.locktype = 'relation' and l.database = (select d.oid from pg_database d where d.datname = current_database())
                and (l.relation = to_regclass('trunkline."limit_orders"') and l.mode = 'AccessShareLock'
                     or l.relation = 'trunkline."queue_orders"'::regclass and l.mode = 'RowExclusiveLock')
                and l.granted and l.pid is distinct from pg_backend_pid()
              group by l.virtualtransaction having count(distinct l.mode) = 2) h);
end ;

function do_find_emails(message bigint) returns TABLE(state text, attempt integer, due_at timestamp with time zone, ended_at timestamp with time zone, enqueued_at timestamp with time zone, error text, payload jsonb, metadata jsonb, priority integer, key text) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    return query select f.* from (
        select case when q.due_at <= clock then 'due' when q.error is not null then 'retrying'
                    when q.attempt = 0 then 'delayed' else 'leased' end,
               q.attempt, q.due_at, null::timestamptz, q.enqueued_at, q.error,
               q.payload[(message - q.id)::int + 1], q.metadata[(message - q.id)::int + 1], 0, null::text
        from (select r.* from trunkline."queue_emails" r
              where r.id <= message and r.id >= message / 1024 * 1024 order by r.id desc limit 1) q
        where message - q.id < q.size
        union all
        select 'dead', q.attempt, null::timestamptz, q.dead_at, q.enqueued_at, q.error, q.payload, q.metadata,
               0, null::text
        from trunkline."dead_emails" q where q.id = message
        union all
        select 'archived', q.attempt, null::timestamptz, q.archived_at, q.enqueued_at, null::text, q.payload, q.metadata,
               0, null::text
        from trunkline."archive_emails" q where q.id = message
    ) f limit 1;
end ;

function do_find_orders(message bigint) returns TABLE(state text, attempt integer, due_at timestamp with time zone, ended_at timestamp with time zone, enqueued_at timestamp with time zone, error text, payload payload_orders, metadata jsonb, priority integer, key text) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    return query select f.* from (
        select case when q.due_at <= clock then 'due' when q.error is not null then 'retrying'
                    when q.attempt = 0 then 'delayed' else 'leased' end,
               q.attempt, q.due_at, null::timestamptz, q.enqueued_at, q.error,
               q.payload[(message - q.id)::int + 1], q.metadata[(message - q.id)::int + 1], 0, q.keys[(message - q.id)::int + 1]
        from (select r.* from trunkline."queue_orders" r
              where r.id <= message and r.id >= message / 1024 * 1024 order by r.id desc limit 1) q
        where message - q.id < q.size
        union all
        select 'dead', q.attempt, null::timestamptz, q.dead_at, q.enqueued_at, q.error, q.payload, q.metadata,
               0, ((q.own ->> 'keys')::text[])[1]
        from trunkline."dead_orders" q where q.id = message
        union all
        select 'archived', q.attempt, null::timestamptz, q.archived_at, q.enqueued_at, null::text, q.payload, q.metadata,
               0, ((q.own ->> 'keys')::text[])[1]
        from trunkline."archive_orders" q where q.id = message
    ) f limit 1;
end ;

function do_find_tasks(message bigint) returns TABLE(state text, attempt integer, due_at timestamp with time zone, ended_at timestamp with time zone, enqueued_at timestamp with time zone, error text, payload text, metadata jsonb, priority integer, key text) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    return query select f.* from (
        select case when q.due_at <= clock then 'due' when q.error is not null then 'retrying'
                    when q.attempt = 0 then 'delayed' else 'leased' end,
               q.attempt, q.due_at, null::timestamptz, q.enqueued_at, q.error,
               q.payload[(message - q.id)::int + 1], q.metadata[(message - q.id)::int + 1], q.lane::int, null::text
        from (select r.* from trunkline."queue_tasks" r
              where r.id <= message and r.id >= message / 1024 * 1024 order by r.id desc limit 1) q
        where message - q.id < q.size
        union all
        select 'dead', q.attempt, null::timestamptz, q.dead_at, q.enqueued_at, q.error, q.payload, q.metadata,
               coalesce((q.own ->> 'lane')::int, 0), null::text
        from trunkline."dead_tasks" q where q.id = message
        union all
        select 'archived', q.attempt, null::timestamptz, q.archived_at, q.enqueued_at, null::text, q.payload, q.metadata,
               coalesce((q.own ->> 'lane')::int, 0), null::text
        from trunkline."archive_tasks" q where q.id = message
    ) f limit 1;
end ;

function do_forget_tasks(pages integer) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_indexscan=off enable_indexonlyscan=off enable_bitmapscan=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    before timestamptz := clock_timestamp() - interval '1 minute';
    whole bigint := pg_relation_size('trunkline."unique_tasks"'::regclass) / current_setting('block_size')::bigint;
    -- The range may begin before the table's first page. Otherwise the first pages would be visited
    -- less often than the others.
    first bigint := case when pages is null then 0 else floor(random() * (whole + pages - 1))::bigint - pages + 1 end;
    low tid := format('(%s,0)', greatest(first, 0))::tid;
    high tid := format('(%s,0)', first + coalesce(pages, whole))::tid;
    tids tid[];
begin
    tids := array(select u.ctid from trunkline."unique_tasks" u
                  where u.ctid >= low and u.ctid < high and u.until < before for update skip locked);
    delete from trunkline."unique_tasks" u where u.ctid = any (tids);
    return coalesce(cardinality(tids), 0);
end ;

function do_free_tasks() returns trigger language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
begin
    if tg_op = 'TRUNCATE' then
        delete from trunkline."unique_tasks" u where u.until is null;
    else
        delete from trunkline."unique_tasks" u where u.ctid = any (array(
            select k.tid from gone g,
                 lateral (select h.ctid as tid from trunkline."unique_tasks" h
                          where h.id >= g.id and h.id < g.id + g.size and h.until is null offset 0) k));
    end if;
    return null;
end ;

function do_gather_emails(n integer, rows integer, cut boolean, apart integer, INOUT due timestamp with time zone, INOUT id bigint, INOUT to_bury integer DEFAULT NULL::integer, OUT tids tid[], OUT got integer, OUT ran_out boolean, OUT more boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
declare
    until timestamptz := clock_timestamp();
    line record;
    seen record;
    wanted int := rows;
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
            -- The usual case: all rows found can be returned whole, so that neither a running total nor a second query is needed.
            with due_row as materialized (
                select q.ctid as tid, q.id, q.due_at, q.size,
                       q.attempt - q.released >= 10
                       or q.attempt > 0 and q.error is null and (q.size > 1 or apart > 0) as awkward
                from trunkline."queue_emails" q where (q.due_at, q.id + 0) >= (due, id) and q.due_at <= until
                order by q.due_at, q.id + 0 limit rows for update skip locked
            )
            select count(*)::int as locked, sum(d.size) as size, bool_or(d.awkward) as awkward, max(d.due_at) as due,
                   array_agg(d.tid order by d.due_at, d.id) as tids
            into line from due_row d;
            if line.locked = 0 then
                return;
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
            -- A single row needs no running total.
            select 1 as locked, array[q.ctid] as tids, q.size as got, q.id as first, q.size,
                   q.attempt - q.released >= 10 as spent,
                   q.attempt > 0 and q.error is null as vanished,
                   (q.size <= n and q.attempt - q.released < 10
                    and (q.attempt = 0 or q.error is not null or q.size = 1 and apart = 0))::int as fitting,
                   q.due_at as due, q.id as id, array[q.ctid] as spent_tids, q.due_at as next_due, q.id + 1 as next_id
            into seen
            from trunkline."queue_emails" q where (q.due_at, q.id + 0) >= (due, id) and q.due_at <= until
            order by q.due_at, q.id + 0 limit rows for update skip locked;
            if not found then
                return;
            end if;
        else
            with due_row as materialized (
                select q.ctid as tid, q.id, q.due_at, q.size,
                       q.attempt - q.released >= 10 as spent,
                       q.attempt > 0 and q.error is null as vanished
                from unnest(line.tids) d(tid) join trunkline."queue_emails" q on q.ctid = d.tid
            ), total as (
                select d.*, row_number() over w as nr,
                       sum(d.size) over w <= n and not bool_or(d.spent or d.vanished and (d.size > 1 or apart > 0)) over w as fits
                from due_row d window w as (order by d.due_at, d.id)
            )
            select count(*)::int as locked,
                   array_agg(l.tid order by l.nr) filter (where l.fits) as tids,
                   (sum(l.size) filter (where l.fits))::int as got,
                   min(l.id) filter (where l.nr = 1) as first, min(l.size) filter (where l.nr = 1) as size,
                   bool_or(l.spent) filter (where l.nr = 1) as spent, bool_or(l.vanished) filter (where l.nr = 1) as vanished,
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
            -- Buries the locked messages that have used all attempts, as far as to_bury allows. The
            -- scan continues at the first locked message that has attempts left. If there is none,
            -- it continues after the last locked message, and reads more rows at a time.
            to_bury := trunkline."do_expire_emails"(seen.spent_tids, to_bury);
            exit when to_bury <= 0;
            rows := case when cardinality(seen.spent_tids) < seen.locked then wanted else least(greatest(rows, 8), 512) * 2 end;
            due := seen.next_due;
            id := seen.next_id;
        elsif seen.vanished and seen.size > 1 then
            exit when apart = 2;
            perform trunkline."do_split_emails"(seen.first, array(select generate_series(1, seen.size)));
            -- Reads only the pieces again, because the row behind them may have to be split, too.
            rows := case when apart > 0 then 1 else least(rows, seen.size) end;
        elsif seen.vanished and apart > 0 then
            exit when apart = 2;
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

function do_gather_orders(n integer, rows integer, cut boolean, apart integer, INOUT due timestamp with time zone, INOUT id bigint, lane integer, of_line text, lined text[], bound timestamp with time zone, INOUT to_bury integer DEFAULT NULL::integer, OUT tids tid[], OUT got integer, OUT ran_out boolean, OUT more boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
declare
    until timestamptz := clock_timestamp();
    line record;
    seen record;
    wanted int := rows;
    innocent constant int := case when apart = 0 then 2147483647 when apart < 3 or 10 < 3 then -1 else 1 end;
    is_lined constant bool := of_line = '' and lined <> '{}';
    few constant text[] := case when cardinality(lined) <= 16 then lined end;
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
            -- The usual case: all rows found can be returned whole, so that neither a running total
            -- nor a second query is needed. The function skips no row, because rows behind it may
            -- have the same key. So the query examines exactly as many rows as it locks.
            with head as materialized (
                select q.ctid as tid, q.due_at, q.attempt, q.size, q.line
                from trunkline."queue_orders" q
                where q.lane = lane and q.line = of_line and (q.place, q.id + 0) >= (due, id) and q.place <= least(until, bound)
                  and q.due_at <= until
                order by q.place, q.id + 0 limit rows
            ), due_row as materialized (
                select q.ctid as tid, q.id, q.place as due_at, q.size,
                       q.attempt - q.released >= 10
                       or q.attempt > 0 and q.error is null and (q.size > 1 or q.attempt - q.released > innocent)
                       or is_lined and coalesce(q.keys && few, (select bool_or(k.key in (select u.key from unnest(lined) u(key))) from unnest(q.keys) k(key))) as awkward
                from head h join trunkline."queue_orders" q on q.ctid = h.tid
                where q.due_at = h.due_at and q.attempt = h.attempt and q.size = h.size and q.line = h.line for update of q skip locked
            )
            select (select count(*)::int from head) as seen, count(*)::int as locked, sum(d.size) as size, bool_or(d.awkward) as awkward,
                   max(d.due_at) as due,
                   array_agg(d.tid order by d.due_at, d.id) as tids
            into line from due_row d;
            if line.locked = 0 then
                return;
            elsif line.locked < line.seen then
                rows := rows / 2; -- another session has locked a row: use only the rows before it
                continue;
            elsif line.size <= n and not line.awkward then
                tids := line.tids;
                got := line.size;
                more := line.locked = rows and got < n;
                if more then
                    due := line.due;
                    id := (select q.id + 1 from trunkline."queue_orders" q where q.ctid = tids[line.locked]);
                end if;
                return;
            end if;
        end if;
        if rows = 1 then
            -- A single row needs no running total.
            with head as materialized (
                select q.ctid as tid, q.due_at, q.attempt, q.size, q.line
                from trunkline."queue_orders" q
                where q.lane = lane and q.line = of_line and (q.place, q.id + 0) >= (due, id) and q.place <= least(until, bound)
                  and q.due_at <= until
                order by q.place, q.id + 0 limit rows
            )
            select 1 as locked, array[q.ctid] as tids, q.size as got, q.id as first, q.size,
                   q.attempt - q.released >= 10 as spent,
                   q.attempt > 0 and q.error is null as vanished, q.attempt - q.released > innocent as alone,
                   m.mixed,
                   (q.size <= n and q.attempt - q.released < 10 and not m.mixed
                    and (q.attempt = 0 or q.error is not null or q.size = 1 and q.attempt - q.released <= innocent))::int as fitting,
                   q.place as due, q.id as id, array[q.ctid] as spent_tids, q.place as next_due, q.id + 1 as next_id
            into seen
            from head h join trunkline."queue_orders" q on q.ctid = h.tid,
                 lateral (select is_lined and coalesce(q.keys && few, (select bool_or(k.key in (select u.key from unnest(lined) u(key))) from unnest(q.keys) k(key))) as mixed offset 0) m
            where q.due_at = h.due_at and q.attempt = h.attempt and q.size = h.size and q.line = h.line for update of q skip locked;
            if not found then
                return;
            end if;
        else
            with due_row as materialized (
                select q.ctid as tid, q.id, q.place as due_at, q.size,
                       q.attempt - q.released >= 10 as spent,
                       q.attempt > 0 and q.error is null as vanished, q.attempt - q.released > innocent as alone,
                       is_lined and coalesce(q.keys && few, (select bool_or(k.key in (select u.key from unnest(lined) u(key))) from unnest(q.keys) k(key))) as mixed
                from unnest(line.tids) d(tid) join trunkline."queue_orders" q on q.ctid = d.tid
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
            -- Buries the locked messages that have used all attempts, as far as to_bury allows. The
            -- scan continues at the first locked message that has attempts left. If there is none,
            -- it continues after the last locked message, and reads more rows at a time.
            to_bury := trunkline."do_expire_orders"(seen.spent_tids, to_bury);
            exit when to_bury <= 0;
            rows := case when cardinality(seen.spent_tids) < seen.locked then wanted else least(greatest(rows, 8), 512) * 2 end;
            due := seen.next_due;
            id := seen.next_id;
        elsif seen.mixed then
            -- One call moves about a hundred rows of such a key as they are, or splits two rows.
            -- Without this limit, due messages of other keys would wait for the backlog of one key.
            exit when parts >= 6;
            moved := 0;
            if rows > 1 then
                update trunkline."queue_orders" q set line = q.keys[1] from unnest(line.tids) d(tid)
                where q.ctid = d.tid and (q.keys[1] in (select u.key from unnest(lined) u(key))) is true and q.keys <@ q.keys[1:1];
                get diagnostics moved = row_count;
                rows := case when moved = line.locked then least(2 * rows, 64) else wanted end;
            end if;
            if moved = 0 then
                perform trunkline."do_part_orders"(seen.first, lined);
            end if;
            parts := parts + case when moved > 0 then 1 else 3 end;
        elsif seen.vanished and seen.size > 1 then
            exit when seen.alone and apart in (2, 4);
            perform trunkline."do_split_orders"(seen.first, array(select generate_series(1, seen.size)));
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
            perform trunkline."do_split_orders"(seen.first, array[n]);
        end if;
    end loop;
end ;

function do_gather_tasks(n integer, rows integer, cut boolean, apart integer, INOUT due timestamp with time zone, INOUT id bigint, lane integer, bound timestamp with time zone, INOUT to_bury integer DEFAULT NULL::integer, OUT tids tid[], OUT got integer, OUT ran_out boolean, OUT more boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
declare
    until timestamptz := least(clock_timestamp(), bound);
    line record;
    seen record;
    wanted int := rows;
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
            -- The usual case: all rows found can be returned whole, so that neither a running total nor a second query is needed.
            with due_row as materialized (
                select q.ctid as tid, q.id, q.due_at, q.size,
                       q.attempt - q.released >= 10
                       or q.attempt > 0 and q.error is null and (q.size > 1 or apart > 0) as awkward
                from trunkline."queue_tasks" q where q.lane = lane and (q.due_at, q.id + 0) >= (due, id) and q.due_at <= until
                order by q.due_at, q.id + 0 limit rows for update skip locked
            )
            select count(*)::int as locked, sum(d.size) as size, bool_or(d.awkward) as awkward, max(d.due_at) as due,
                   array_agg(d.tid order by d.due_at, d.id) as tids
            into line from due_row d;
            if line.locked = 0 then
                return;
            elsif line.size <= n and not line.awkward then
                tids := line.tids;
                got := line.size;
                more := line.locked = rows and got < n;
                if more then
                    due := line.due;
                    id := (select q.id + 1 from trunkline."queue_tasks" q where q.ctid = tids[line.locked]);
                end if;
                return;
            end if;
        end if;
        if rows = 1 then
            -- A single row needs no running total.
            select 1 as locked, array[q.ctid] as tids, q.size as got, q.id as first, q.size,
                   q.attempt - q.released >= 10 as spent,
                   q.attempt > 0 and q.error is null as vanished,
                   (q.size <= n and q.attempt - q.released < 10
                    and (q.attempt = 0 or q.error is not null or q.size = 1 and apart = 0))::int as fitting,
                   q.due_at as due, q.id as id, array[q.ctid] as spent_tids, q.due_at as next_due, q.id + 1 as next_id
            into seen
            from trunkline."queue_tasks" q where q.lane = lane and (q.due_at, q.id + 0) >= (due, id) and q.due_at <= until
            order by q.due_at, q.id + 0 limit rows for update skip locked;
            if not found then
                return;
            end if;
        else
            with due_row as materialized (
                select q.ctid as tid, q.id, q.due_at, q.size,
                       q.attempt - q.released >= 10 as spent,
                       q.attempt > 0 and q.error is null as vanished
                from unnest(line.tids) d(tid) join trunkline."queue_tasks" q on q.ctid = d.tid
            ), total as (
                select d.*, row_number() over w as nr,
                       sum(d.size) over w <= n and not bool_or(d.spent or d.vanished and (d.size > 1 or apart > 0)) over w as fits
                from due_row d window w as (order by d.due_at, d.id)
            )
            select count(*)::int as locked,
                   array_agg(l.tid order by l.nr) filter (where l.fits) as tids,
                   (sum(l.size) filter (where l.fits))::int as got,
                   min(l.id) filter (where l.nr = 1) as first, min(l.size) filter (where l.nr = 1) as size,
                   bool_or(l.spent) filter (where l.nr = 1) as spent, bool_or(l.vanished) filter (where l.nr = 1) as vanished,
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
            -- Buries the locked messages that have used all attempts, as far as to_bury allows. The
            -- scan continues at the first locked message that has attempts left. If there is none,
            -- it continues after the last locked message, and reads more rows at a time.
            to_bury := trunkline."do_expire_tasks"(seen.spent_tids, to_bury);
            exit when to_bury <= 0;
            rows := case when cardinality(seen.spent_tids) < seen.locked then wanted else least(greatest(rows, 8), 512) * 2 end;
            due := seen.next_due;
            id := seen.next_id;
        elsif seen.vanished and seen.size > 1 then
            exit when apart = 2;
            perform trunkline."do_split_tasks"(seen.first, array(select generate_series(1, seen.size)));
            -- Reads only the pieces again, because the row behind them may have to be split, too.
            rows := case when apart > 0 then 1 else least(rows, seen.size) end;
        elsif seen.vanished and apart > 0 then
            exit when apart = 2;
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
            perform trunkline."do_split_tasks"(seen.first, array[n]);
        end if;
    end loop;
end ;

function do_heads_tasks(n integer, rows integer, apart boolean, floor timestamp with time zone[], OUT due timestamp with time zone, OUT id bigint, OUT tids tid[], OUT got integer, OUT ran_out boolean, OUT more boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
    head_start constant interval := interval '00:01:00';
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
        select h.*, greatest(h.due_at, '0001-01-01 00:00:00+00') - l.nr * head_start as rank
        from generate_series(4 - 1, 0, -1) l(nr), lateral (
            select q.ctid as tid, q.id, q.due_at, q.size, q.attempt,
                   q.attempt - q.released >= 10 or q.attempt > 0 and q.error is null and (q.size > 1 or apart) as awkward
            from trunkline."queue_tasks" q
            where q.lane = l.nr and (q.due_at, q.id + 0) >= (floor[l.nr + 1], 0) and q.due_at <= clock
            order by q.due_at, q.id + 0 limit most) h
        limit most -- limits all lanes together: if there are this many rows, not everything fits
    ), whole as materialized (
        select count(*) as seen, count(*) < most and sum(h.size) <= n and not bool_or(h.awkward) as fits from head h
    ), fitting as materialized (
        select h.* from head h, whole w where w.fits
    ), locked as materialized (
        select f.rank, f.id, q.ctid as tid, q.size
        from fitting f join trunkline."queue_tasks" q on q.ctid = f.tid
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

function do_hold_orders(ids bigint[], sizes integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    r record;
begin
    -- One statement, in the order of the keys: two sessions with the same keys would wait for each other.
    with failed as materialized (
        select q.lane, q.keys, q.due_at from unnest(ids, sizes) d(id, size)
        join trunkline."queue_orders" q on q.id >= d.id and q.id < d.id + d.size
        where q.error is not null
    )
    insert into trunkline."line_orders" as l (lane, key, until)
    select f.lane, k.key, max(f.due_at) from failed f, unnest(f.keys) k(key) group by f.lane, k.key order by f.lane, k.key
    on conflict (lane, key) do update set until = greatest(l.until, excluded.until);
    for r in
        select q.id, q.keys, q.line from unnest(ids, sizes) d(id, size)
        join trunkline."queue_orders" q on q.id >= d.id and q.id < d.id + d.size
        where q.error is not null order by q.id
    loop
        continue when r.line <> ''; -- a row in a key's own line stays there
        perform trunkline."do_part_orders"(r.id, r.keys);
    end loop;
end ;

function do_holdlane_orders(lanes integer[], holder bigint, until timestamp with time zone, floor timestamp with time zone, clock timestamp with time zone) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    l int;
begin
    for l in select u.lane from unnest(lanes) u(lane) order by u.lane loop
        update trunkline."lane_orders" h
        set holder = holder, held_until = greatest(h.held_until, until), served_at = clock, wanted_until = '-infinity',
            starts_until = greatest(h.starts_until, clock + (until - clock) / 3),
            empty_at = case when h.holder = holder and h.held_until > clock then h.empty_at else greatest(h.empty_at, h.starts_until) end,
            floor = greatest(h.floor, least(floor, (
                select q.place from trunkline."queue_orders" q where q.lane = l and q.line = '' and (q.place, q.id + 0) >= (h.floor, 0)
                order by q.place, q.id + 0 limit 1)))
        where h.lane = l;
    end loop;
end ;

function do_keep_orders(ids bigint[], lease interval, holders text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz;
    l record;
begin
    if exists (select from trunkline."lane_orders" h where h.lane >= 0 and h.served_at > clock_timestamp() + interval '1 s') then
        perform trunkline."do_right_orders"(1);
    end if;
    for l in
        select h.lane, h.holder, h.held_until < clock_timestamp() + lease as ends from trunkline."lane_orders" h
        where h.lane in (select q.lane from unnest(ids) d(id) join trunkline."queue_orders" q on q.id = d.id)
        order by h.lane for update
    loop
        if l.lane || ' ' || l.holder <> all (holders) is not false then
            raise exception 'the leases of queue % ended before they were extended', quote_literal('orders') using errcode = 'TL001',
                hint = 'Nothing was extended. Another worker may hold the partitions now.';
        end if;
        continue when not l.ends;
        clock := clock_timestamp(); -- read once, because the clock may be corrected between two readings
        update trunkline."lane_orders" h
        set held_until = clock + lease * 1.5, starts_until = greatest(h.starts_until, clock + lease / 2), served_at = clock
        where h.lane = l.lane;
    end loop;
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform trunkline.check_snapshot('orders'); -- otherwise partitions could be invisible
    end if;
end ;

function do_kept_emails(r queue_emails) returns jsonb language sql stable as RETURN CASE WHEN (do_own_emails() IS NOT NULL) THEN own(do_own_emails(), r) ELSE NULL::jsonb END;

function do_kept_orders(r queue_orders) returns jsonb language sql stable as RETURN (COALESCE(CASE WHEN (do_own_orders() IS NOT NULL) THEN own(do_own_orders(), r) ELSE NULL::jsonb END, '{}'::jsonb) || jsonb_build_object('lane', ((r).lane)::text, 'keys', (r).keys));

function do_kept_tasks(r queue_tasks) returns jsonb language sql stable as RETURN (COALESCE(CASE WHEN (do_own_tasks() IS NOT NULL) THEN own(do_own_tasks(), r) ELSE NULL::jsonb END, '{}'::jsonb) || jsonb_build_object('lane', ((r).lane)::text));

function do_keptof_emails(own jsonb, k integer) returns jsonb language sql immutable as RETURN own;

function do_keptof_orders(own jsonb, k integer) returns jsonb language sql immutable as RETURN (own || jsonb_build_object('keys', (ARRAY[((own -> 'keys'::text) ->> k)])::text));

function do_keptof_tasks(own jsonb, k integer) returns jsonb language sql immutable as RETURN own;

function do_keyed_orders(payloads payload_orders[], keys text[], delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], due timestamp with time zone DEFAULT NULL::timestamp with time zone) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    count bigint;
begin
    if delay is null or delay < '0' or delay > '36500 days' then
        raise exception 'a delay of % is out of bounds', coalesce(delay::text, 'null') using errcode = 'invalid_parameter_value',
            hint = 'A delay is at least zero and at most 36500 days.';
    elsif payloads is null then
        raise exception 'the payloads of queue % are null', quote_literal('orders') using errcode = 'null_value_not_allowed',
            hint = 'Pass an array; an empty one enqueues nothing.';
    elsif array_ndims(payloads) > 1 then
        raise exception 'the payloads must be an array of one dimension, not of %', array_ndims(payloads)
            using errcode = 'array_subscript_error', hint = 'Pass an array of one dimension.';
    end if;
    perform trunkline.check_keys('orders', keys, cardinality(payloads));
    payloads := payloads[:];
    if metadata is not null then
        if cardinality(metadata) <> cardinality(payloads) then
            raise exception 'the call has % payloads, but metadata for %', cardinality(payloads), cardinality(metadata)
                using errcode = 'invalid_parameter_value', hint = 'Pass one for each payload, or null for a payload without one.';
        end if;
        perform trunkline.check_metadata(m) from unnest(metadata) m;
    end if;
    return query
        with message as (
            select m.nr, m.metadata, m.key, 0 + trunkline.lane_of(m.key, 64) as lane,
                   trunkline.payload_bytes('orders', pg_column_size(m.payload)) + coalesce(pg_column_size(m.metadata), 0) as bytes
            from (select generate_series(1, cardinality(payloads)) as nr, unnest(payloads) as payload, unnest(metadata) as metadata,
                         unnest(keys) as key) m
        ), placed as (
            select m.*, row_number() over w as at, (sum(m.bytes) over w - m.bytes)::bigint / 65536 as page
            from message m window w as (partition by m.lane order by m.nr)
        ), batch as (
            select array_agg(p.nr order by p.nr) as nrs, count(*)::int as size, p.lane,
                   array(select payloads[u.nr] from unnest(array_agg(p.nr order by p.nr)) u(nr)) as payload,
                   case when count(p.metadata) > 0 then array_agg(p.metadata order by p.nr) end as metadata, array_agg(p.key order by p.nr) as keys,
                   row_number() over (order by min(p.nr)) as batch
            from placed p group by p.lane, p.page, p.bytes > 65536, (p.at - 1) / 1024
        ), stored as (
            insert into trunkline."queue_orders" (due_at, size, payload, metadata, lane, keys)
            select greatest(greatest(trunkline.clock(), due) + delay, trunkline.clock()), b.size, b.payload, b.metadata, b.lane, b.keys
            from batch b order by b.batch
            returning id
        )
        select n.ids[b.batch] + m.at - 1
        from (select array_agg(s.id order by s.id) as ids from stored s) n, batch b, unnest(b.nrs) with ordinality m(nr, at)
        where cardinality(n.ids) = (select count(*) from batch) -- otherwise the ids would belong to other messages
        order by m.nr;
    get diagnostics count = row_count;
    if count <> cardinality(payloads) then
        perform trunkline.not_stored('orders', cardinality(payloads), count);
    end if;
    if cardinality(payloads) > 0 and trunkline.announced('trunkline.orders') then
        perform pg_notify('trunkline.orders', '');
    end if;
end ;

function do_lanes_orders(n integer, lease interval, holder bigint, floor timestamp with time zone DEFAULT '-infinity'::timestamp with time zone, most integer DEFAULT NULL::integer) returns TABLE(id bigint, attempt integer, size integer, enqueued_at timestamp with time zone, due_at timestamp with time zone, payload payload_orders[], metadata jsonb[], ran_out boolean, released integer, keys text[], rate double precision[]) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    term interval := case when lease is null then interval '00:00:30'
                          when lease > '0' and lease <= '365 days' and now() + lease > now() and now() + lease <= now() + interval '8808 hours' then lease
                          else trunkline.check_lease(lease) end;
    clock timestamptz := clock_timestamp();
    marked constant bool := most < 0;
    way int := case when marked or most is null then 3 else 1 end;
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
    to_bury int;
    ahead bool := false;
    later bool;
begin
    if true then
        n := trunkline."do_allowed_orders"(n, true);
    end if;
    if marked then
        most := null;
    end if;
    allowed := n;
    for l in
        -- Checks whether a message is due in each partition. The condition on `line` is a range:
        -- for an equality, the planner would hash the backlogs of all partitions.
        select h.lane, h.wanted_until > clock as wanted, h.held_until, h.floor, h.served_at > clock_timestamp() + interval '1 s' as ahead,
               (exists (select from trunkline."queue_orders" q where q.lane = h.lane and q.line = '' and (q.place, q.id + 0) >= (h.floor, 0)
                               and q.place <= clock and q.due_at <= clock)
                or exists (select from trunkline."line_orders" w where w.lane >= h.lane and w.lane <= h.lane and w.until <= clock)) as due
        from trunkline."lane_orders" h
        where h.lane >= 0 and h.holder = holder and h.held_until > clock order by random()
    loop
        mine := mine + 1;
        if l.ahead then
            ahead := true; -- do_right_ repairs the partition below, for the next call
            continue;
        elsif l.wanted then
            leaving := leaving || l.lane::int;
            continue;
        end if;
        continue when n <= 0 or alone or not l.due;
        -- The hold may have ended in the meantime, and another worker may have taken the partition.
        -- Only a session that has locked the partition can be sure who holds it.
        perform from trunkline."lane_orders" h where h.lane = -1 - l.lane for update skip locked;
        continue when not found;
        continue when not exists (
            select from trunkline."lane_orders" h where h.lane = l.lane and h.holder = holder and h.held_until > clock_timestamp());
        -- Some keys have their own backlogs. Without this bound, the backlog that is read first
        -- would leave no room for the other partitions.
        at := trunkline."do_along_orders"(n, l.lane, l.floor, way, case when most <= 1 then n else n - n / 4 end, to_bury);
        to_bury := at.to_bury;
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
        select count(distinct h.holder) filter (where h.held_until > clock and h.holder <> holder), coalesce(bool_or(h.served_at > clock_timestamp() + interval '1 s'), false)
        into others, later from trunkline."lane_orders" h where h.lane >= 0;
        ahead := ahead or later;
        most := least(most, (64 + others) / (others + 1));
        for l in
            -- No message of a partition without a holder is leased, so all its due messages go to
            -- the worker that gets the partition.
            select h.lane, h.floor from trunkline."lane_orders" h
            where h.lane >= 0 and h.held_until <= clock
              and (exists (select from trunkline."queue_orders" q where q.lane = h.lane and q.line = '' and (q.place, q.id + 0) >= (h.floor, 0)
                                and q.place <= clock and q.due_at <= clock)
                   or exists (select from trunkline."line_orders" w where w.lane >= h.lane and w.lane <= h.lane and w.until <= clock))
            order by h.served_at
        loop
            exit when n <= 0 or mine >= most or alone;
            perform from trunkline."lane_orders" h where h.lane = l.lane and h.held_until <= clock for update skip locked;
            continue when not found;
            at := trunkline."do_along_orders"(n, l.lane, l.floor, way, case when most <= 1 then n else n - n / 4 end, to_bury);
            to_bury := at.to_bury;
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
        if n > 0 and others > 0 and mine < least(most, 64 / (others + 1)) then
            perform trunkline."do_want_orders"(least(most, 64 / (others + 1)) - mine, 64 / (others + 1), holder, until);
        end if;
    end if;
    if ahead then
        perform trunkline."do_right_orders"(1);
    end if;
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform trunkline.check_snapshot('orders'); -- otherwise keys that wait could be invisible
    end if;
    if held <> '{}' and leaving <> '{}' then
        -- The next two calls lock some partitions each. Together they must lock them in the order of
        -- their numbers, as a renewal does.
        perform from trunkline."lane_orders" h where h.lane = any (held || leaving) order by h.lane for update;
    end if;
    perform trunkline."do_holdlane_orders"(held, holder, until, floor, clock);
    if leaving <> '{}' then
        perform trunkline."do_leave_orders"(leaving, holder);
    end if;
    return query
        with leased as (
            update trunkline."queue_orders" q
            set due_at = greatest(d.until, trunkline.clock()), attempt = q.attempt + 1, error = null
            from unnest(tids, untils) with ordinality d(tid, until, nr)
            where q.ctid = d.tid
            returning d.nr, q.id, q.attempt, q.size, q.enqueued_at, q.due_at, q.payload, q.metadata, q.released, q.keys, q.lane)
        select e.id, e.attempt, e.size, e.enqueued_at, e.due_at, e.payload, e.metadata, e.nr = ran_out_nr, e.released, e.keys,
               case when null::float8 is not null then (
                   select array[1 / null::float8, null::float8 / null::float8,
                                case when isfinite(h.empty_at) then greatest(
                                    extract(epoch from h.empty_at - clock)::float8 + null::float8 / null::float8, 0)
                                else 0 end]
                   from trunkline."lane_orders" h where h.lane = e.lane) end
        from leased e order by e.nr;
    if true and allowed > n then
        perform trunkline."do_used_orders"(allowed - n);
    end if;
    if marked and to_bury <= 0 then
        return query select null::bigint, 0, 0, null::timestamptz, null::timestamptz, null::trunkline.payload_orders[], null::jsonb[], false, 0, null::text[], null::float8[];
    end if;
end ;

function do_lanesin_orders(holder bigint) returns double precision language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
    held float8;
    rests timestamptz;
begin
    if true then
        held := trunkline."do_allowedin_orders"();
    end if;
    -- As in do_lanes_, a holder reads its partitions that no other worker requests, and free
    -- partitions while it has fewer than its share.
    if held is null and not false and exists (
        select from trunkline."lane_orders" h,
             lateral (select q.keys from trunkline."queue_orders" q
                      where q.lane = h.lane and q.line = '' and (q.place, q.id + 0) >= (h.floor, 0) and q.place <= clock and q.due_at <= clock
                      order by q.place, q.id + 0 limit 1) f
        where h.lane in (select w.lane from trunkline."line_orders" w)
          and case when h.held_until > clock then h.holder = holder and h.wanted_until <= clock
                   else (select count(*) filter (where s.holder = holder)
                                < (64 + count(distinct s.holder) filter (where s.holder <> holder))
                                  / (count(distinct s.holder) filter (where s.holder <> holder) + 1)
                         from trunkline."lane_orders" s where s.lane >= 0 and s.held_until > clock) end
          and exists (select from unnest(f.keys) k(key) join trunkline."line_orders" w on w.lane = h.lane and w.key = k.key)) then
        return 0;
    end if;
    rests := (
        select min(w.until) from trunkline."lane_orders" h join trunkline."line_orders" w on w.lane = h.lane,
             lateral (select q.due_at from trunkline."queue_orders" q where q.lane = w.lane and q.line = w.key order by q.place, q.id + 0 limit 1) f
        where h.holder = holder and h.held_until > clock and w.until > clock and w.until <= clock + interval '1 second' and f.due_at <= clock);
    if rests is not null then
        return -extract(epoch from rests - clock);
    end if;
    return least(held, extract(epoch from least(
        (select q.due_at from trunkline."queue_orders" q where q.due_at > clock order by q.due_at, q.id + 0 limit 1),
        case when null::float8 is not null then (
            select min(w.until) from trunkline."lane_orders" h join trunkline."line_orders" w on w.lane = h.lane
            where h.holder = holder and h.held_until > clock and w.until > clock) end,
        (select min(h.held_until) from trunkline."lane_orders" h where h.lane >= 0 and h.held_until > clock and h.holder <> holder)) - clock)::float8);
end ;

function do_lease_emails(n integer, lease interval DEFAULT NULL::interval, floor timestamp with time zone DEFAULT '-infinity'::timestamp with time zone, rows integer DEFAULT 1, apart boolean DEFAULT false) returns TABLE(id bigint, attempt integer, size integer, enqueued_at timestamp with time zone, due_at timestamp with time zone, payload jsonb[], metadata jsonb[], ran_out boolean, released integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    term interval := interval '00:00:30';
    way int := apart::int;
    at record;
    due timestamptz := floor;
    until timestamptz := clock_timestamp();
    next_id bigint := 0;
    marked bool;
    to_bury int;
    stops bool;
    used int := 0;
begin
    if lease is not null then
        -- The bounds of check_lease. Without a lease, their check is not even prepared.
        term := case when lease > '0' and lease <= '365 days' and now() + lease > now() and now() + lease <= now() + interval '8808 hours' then lease
                     else trunkline.check_lease(lease) end;
    end if;
    if false then
        n := trunkline."do_allowed_emails"(n, true);
    end if;
    if n between 1 and abs(rows) and not false and not false then
        -- The usual case if messages are few: all due rows can be leased whole, with one statement.
        if n = 1 then
            -- One message needs no running total and no sorted result; both would only cost time.
            return query
                update trunkline."queue_emails" q
                set due_at = trunkline.clock() + term, attempt = q.attempt + 1, error = null
                where q.ctid = (select h.ctid from trunkline."queue_emails" h where (h.due_at, h.id + 0) >= (due, 0) and h.due_at <= until
                                order by h.due_at, h.id + 0 limit 1 for update skip locked)
                  and q.size = 1 and q.attempt - q.released < 10 and not (q.attempt > 0 and q.error is null and apart)
                returning q.id, q.attempt, q.size, q.enqueued_at, q.due_at, q.payload, q.metadata, false, q.released;
        else
            return query
                with head as materialized (
                    select q.ctid as tid, q.due_at, q.id, q.size,
                           q.attempt - q.released >= 10 or q.attempt > 0 and q.error is null and (q.size > 1 or apart) as awkward
                    from trunkline."queue_emails" q where (q.due_at, q.id + 0) >= (due, 0) and q.due_at <= until
                    order by q.due_at, q.id + 0 limit abs(rows) for update skip locked
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
        elsif n = 1 then
            perform from trunkline."queue_emails" q where (q.due_at, q.id + 0) >= (due, 0) and q.due_at <= until
            order by q.due_at, q.id + 0 limit 1 for update skip locked;
            if not found then
                return; -- nothing is due: not even a row that has to be split
            end if;
        end if;
    end if;
    marked := rows < 0;
    rows := abs(rows);
    while n > 0 loop
        at := trunkline."do_gather_emails"(n, rows, true, way, due, next_id, to_bury);
        to_bury := at.to_bury;
        exit when at.got = 0;
        if cardinality(at.tids) = 1 then
            -- The usual case if messages are few: a single row needs no order.
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
        exit when at.ran_out or not at.more;
        n := n - at.got;
        -- After a row that could not be returned whole, only as many rows are locked as could be
        -- used. Otherwise each row that has to be split would require reading all of them.
        stops := stops or cardinality(at.tids) < rows;
        rows := least(n, 1 + n::bigint * cardinality(at.tids) / at.got, case when stops then 4 + 2 * cardinality(at.tids) else n end);
        way := least(2 * way, 2); -- after the first pass, messages whose lease expired are left out
        due := at.due;
        next_id := at.id;
    end loop;
    if false and used > 0 then
        perform trunkline."do_used_emails"(used);
    end if;
    if marked and to_bury <= 0 then
        return query select null::bigint, 0, 0, null::timestamptz, null::timestamptz, null::pg_catalog.jsonb[], null::jsonb[], false, 0;
    end if;
end ;

function do_lease_orders(n integer, lease interval DEFAULT NULL::interval, floor timestamp with time zone DEFAULT '-infinity'::timestamp with time zone, rows integer DEFAULT 1, apart boolean DEFAULT false) returns TABLE(id bigint, attempt integer, size integer, enqueued_at timestamp with time zone, due_at timestamp with time zone, payload payload_orders[], metadata jsonb[], ran_out boolean, released integer) language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.refuse_keys('orders');
end ;

function do_lease_tasks(n integer, lease interval DEFAULT NULL::interval, floor timestamp with time zone[] DEFAULT array_fill('-infinity'::timestamp with time zone, ARRAY[4]), rows integer DEFAULT 1, apart boolean DEFAULT false) returns TABLE(id bigint, attempt integer, size integer, enqueued_at timestamp with time zone, due_at timestamp with time zone, payload text[], metadata jsonb[], ran_out boolean, released integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    term interval := interval '00:00:30';
    way int := apart::int;
    at record;
    turn record;
    dues timestamptz[] := floor;
    next_ids bigint[] := array_fill(0::bigint, array[4]);
    by_lane bool := n = 1;
    marked constant bool := rows < 0;
    to_bury int;
    stops bool;
    used int := 0;
begin
    if lease is not null then
        -- The bounds of check_lease. Without a lease, their check is not even prepared.
        term := case when lease > '0' and lease <= '365 days' and now() + lease > now() and now() + lease <= now() + interval '8808 hours' then lease
                     else trunkline.check_lease(lease) end;
    end if;
    if false then
        n := trunkline."do_allowed_tasks"(n, true);
    end if;
    rows := abs(rows);
    while n > 0 and not false loop
        if not by_lane then
            at := trunkline."do_heads_tasks"(n, rows, apart, floor);
            by_lane := at.more;
        else
            turn := trunkline."do_turn_tasks"(dues, next_ids);
            exit when turn.lane is null;
            at := trunkline."do_gather_tasks"(n, rows, true, way, dues[turn.lane + 1], next_ids[turn.lane + 1], turn.lane, turn.bound, to_bury);
            to_bury := at.to_bury;
            -- If `more` is false, no free row is left below the bound: other sessions hold the other
            -- rows of the lane, or these rows are due later.
            dues[turn.lane + 1] := case when at.more then at.due else turn.bound end;
            next_ids[turn.lane + 1] := case when at.more then at.id else 9223372036854775807 end;
        end if;
        continue when at.got = 0 and by_lane and (to_bury <= 0) is not true;
        exit when at.got = 0;
        if cardinality(at.tids) = 1 then
            -- The usual case if messages are few: a single row needs no order.
            return query
                update trunkline."queue_tasks" q
                set due_at = trunkline.clock() + term, attempt = q.attempt + 1, error = null
                where q.ctid = at.tids[1]
                returning q.id, q.attempt, q.size, q.enqueued_at, q.due_at, q.payload, q.metadata, at.ran_out, q.released;
        else
            return query
                with leased as (
                    update trunkline."queue_tasks" q
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
        -- After a row that could not be returned whole, only as many rows are locked as could be
        -- used. Otherwise each row that has to be split would require reading all of them.
        stops := stops or at.more and cardinality(at.tids) < rows;
        rows := least(n, 1 + n::bigint * cardinality(at.tids) / at.got, case when stops then 4 + 2 * cardinality(at.tids) else n end);
        way := least(2 * way, 2); -- after the first pass, messages whose lease expired are left out
    end loop;
    if false and used > 0 then
        perform trunkline."do_used_tasks"(used);
    end if;
    if marked and to_bury <= 0 then
        return query select null::bigint, 0, 0, null::timestamptz, null::timestamptz, null::pg_catalog.text[], null::jsonb[], false, 0;
    end if;
end ;

function do_leased_orders() returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    clock := least(clock, trunkline."do_extending_orders"());
    return (select coalesce(sum(q.size), 0) from trunkline."queue_orders" q
            where q.attempt > 0 and q.error is null and q.due_at > clock);
end ;

function do_leave_orders(lanes integer[], holder bigint) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    -- The next statement sees all leases of the session that held these locks before, because its
    -- snapshot is taken after the locks.
    lanes := array(
        select -1 - h.lane from trunkline."lane_orders" h
        where h.lane < 0 and (lanes is null or -1 - h.lane = any (lanes))
          and exists (select from trunkline."lane_orders" o where o.lane = -1 - h.lane and o.holder = holder and o.held_until > clock)
        for update of h skip locked);
    update trunkline."lane_orders" g set holder = null, held_until = '-infinity', wanted_until = '-infinity', starts_until = least(g.starts_until, clock)
    from (select h.lane from trunkline."lane_orders" h
          where h.lane >= 0 and h.holder = holder and h.lane = any (lanes) and h.held_until > clock
          order by h.lane for update) h
    where g.lane = h.lane
      -- Evaluated once, along the index on due times. `lane + 0` keeps the planner off the index that
      -- begins with the lane and contains all waiting messages. No lease ends after the hold of its
      -- partition: messages that are due later are delayed or wait for a retry, and may be many.
      and g.lane <> all (array(
        select distinct q.lane + 0 from trunkline."queue_orders" q
        where q.attempt > 0 and q.error is null and q.due_at > clock
          and q.due_at < (select max(o.held_until) from trunkline."lane_orders" o where o.lane >= 0 and o.holder = holder) + interval '1 minute'));
    if found then
        perform pg_notify('trunkline.orders', '');
    end if;
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform trunkline.check_snapshot('orders'); -- otherwise leases could be invisible
    end if;
end ;

function do_line_orders(keys text[], pauses double precision[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
begin
    perform from trunkline."lane_orders" where false; -- locks this table first, as does a session that adds partitions
    insert into trunkline."line_orders" as l (lane, key, until)
    select h.lane, k.key, clock_timestamp() + k.pause * interval '1 second'
    from unnest(keys, pauses) k(key, pause)
    -- the partitions may have changed since the call began
    join trunkline."lane_orders" h on h.lane = 0 + trunkline.lane_of(k.key, 64)
    order by 1, 2
    on conflict (lane, key) do update set until = greatest(l.until, excluded.until);
end ;

function do_look_emails(floor timestamp with time zone) returns TABLE(oldest timestamp with time zone, candidate timestamp with time zone, due_in double precision, running bigint, next bigint, cost double precision) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    began timestamptz := clock_timestamp();
    held float8; -- the seconds until the limits allow a message
begin
    if false then
        held := trunkline."do_allowedin_emails"();
    end if;
    return query
        select o.due_at, least(o.due_at, now()),
               case when not false and o.due_at is not null then greatest(extract(epoch from o.due_at - clock_timestamp())::float8, held) end,
               pg_snapshot_xmin(s)::text::bigint,
               pg_snapshot_xmin(s)::text::bigint + age(pg_snapshot_xmin(s)::xid),
               extract(epoch from clock_timestamp() - began)::float8
        from pg_current_snapshot() s
        left join lateral (
            select q.due_at from trunkline."queue_emails" q where q.due_at >= floor order by q.due_at, q.id + 0 limit 1) o on true;
end ;

function do_look_orders(floor timestamp with time zone) returns TABLE(oldest timestamp with time zone, candidate timestamp with time zone, due_in double precision, running bigint, next bigint, cost double precision) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    began timestamptz := clock_timestamp();
    held float8; -- the seconds until the limits allow a message
begin
    if true then
        held := trunkline."do_allowedin_orders"();
    end if;
    return query
        select o.due_at, least(o.due_at, now()),
               case when not false and o.due_at is not null then greatest(extract(epoch from o.due_at - clock_timestamp())::float8, held) end,
               pg_snapshot_xmin(s)::text::bigint,
               pg_snapshot_xmin(s)::text::bigint + age(pg_snapshot_xmin(s)::xid),
               extract(epoch from clock_timestamp() - began)::float8
        from pg_current_snapshot() s
        left join lateral (
            select q.due_at from trunkline."queue_orders" q where q.due_at >= floor order by q.due_at, q.id + 0 limit 1) o on true;
end ;

function do_look_tasks(floor timestamp with time zone[]) returns TABLE(oldest timestamp with time zone, candidate timestamp with time zone, due_in double precision, running bigint, next bigint, cost double precision) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    began timestamptz := clock_timestamp();
    held float8; -- the seconds until the limits allow a message
begin
    if false then
        held := trunkline."do_allowedin_tasks"();
    end if;
    return query
        select o.due_at, least(o.due_at, now()),
               case when not false and o.due_at is not null then greatest(extract(epoch from o.due_at - clock_timestamp())::float8, held) end,
               pg_snapshot_xmin(s)::text::bigint,
               pg_snapshot_xmin(s)::text::bigint + age(pg_snapshot_xmin(s)::xid),
               extract(epoch from clock_timestamp() - began)::float8
        from pg_current_snapshot() s cross join generate_series(0, 4 - 1) l(lane)
        left join lateral (
            select q.due_at from trunkline."queue_tasks" q where q.lane = l.lane and q.due_at >= floor[l.lane + 1] order by q.due_at, q.id + 0 limit 1) o on true
        order by l.lane;
end ;

function do_lower_orders(low tid, high tid) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    stray record;
begin
    if current_setting('transaction_read_only') = 'on' or not has_column_privilege('trunkline."lane_orders"', 'floor', 'update') then
        return;
    elsif low is null then
        select array_agg(l.lane) as lanes, array_agg(f.place) as places into stray
        from trunkline."lane_orders" l, lateral (
            select q.place from trunkline."queue_orders" q where q.lane = l.lane and q.line = '' order by q.place, q.id + 0 limit 1) f
        where l.lane >= 0 and f.place < l.floor;
    else
        select array_agg(f.lane) as lanes, array_agg(f.place) as places into stray
        from (select q.lane, min(q.place) as place from trunkline."queue_orders" q where q.ctid >= low and q.ctid < high and q.line = '' group by q.lane) f
        join trunkline."lane_orders" l on l.lane = f.lane where f.place < l.floor;
    end if;
    if stray.lanes is not null then
        update trunkline."lane_orders" h set floor = least(h.floor, s.place)
        from (select l.lane, u.place from unnest(stray.lanes, stray.places) u(lane, place) join trunkline."lane_orders" l on l.lane = u.lane
              order by l.lane for update of l skip locked) s
        where h.lane = s.lane;
    end if;
end ;

function do_own_emails() returns text language plpgsql immutable set search_path=pg_catalog, pg_temp as 
declare
    r trunkline."queue_emails"%rowtype;
    own jsonb;
begin
    r.size := 0; -- otherwise the record as a whole is null
    own := to_jsonb(r) - array['id', 'enqueued_at', 'due_at', 'attempt', 'released', 'size', 'error', 'payload', 'metadata']
        - '{}'::text[]; -- a separate subtraction costs less
    if own = '{}' then
        return null;
    end if;
    return (select format('select jsonb_object(%L::text[], array[%s])', array_agg(o.name), string_agg(format('($1).%I::text', o.name), ', '))
            from jsonb_object_keys(own) o(name));
end ;

function do_own_orders() returns text language plpgsql immutable set search_path=pg_catalog, pg_temp as 
declare
    r trunkline."queue_orders"%rowtype;
    own jsonb;
begin
    r.size := 0; -- otherwise the record as a whole is null
    own := to_jsonb(r) - array['id', 'enqueued_at', 'due_at', 'attempt', 'released', 'size', 'error', 'payload', 'metadata']
        - '{lane,line,place,keys}'::text[]; -- a separate subtraction costs less
    if own = '{}' then
        return null;
    end if;
    return (select format('select jsonb_object(%L::text[], array[%s])', array_agg(o.name), string_agg(format('($1).%I::text', o.name), ', '))
            from jsonb_object_keys(own) o(name));
end ;

function do_own_tasks() returns text language plpgsql immutable set search_path=pg_catalog, pg_temp as 
declare
    r trunkline."queue_tasks"%rowtype;
    own jsonb;
begin
    r.size := 0; -- otherwise the record as a whole is null
    own := to_jsonb(r) - array['id', 'enqueued_at', 'due_at', 'attempt', 'released', 'size', 'error', 'payload', 'metadata']
        - '{lane}'::text[]; -- a separate subtraction costs less
    if own = '{}' then
        return null;
    end if;
    return (select format('select jsonb_object(%L::text[], array[%s])', array_agg(o.name), string_agg(format('($1).%I::text', o.name), ', '))
            from jsonb_object_keys(own) o(name));
end ;

function do_part_orders(row_id bigint, lined text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    r record;
    cuts int[];
begin
    select q.size, q.keys into r from trunkline."queue_orders" q where q.id = row_id;
    -- Of thousands of keys, the row has a few. A subquery is hashed, and an array is not.
    lined := array(select distinct k.key from unnest(r.keys) k(key) where (k.key in (select u.key from unnest(lined) u(key))) is true);
    cuts := array(
        select k.at::int from (select u.key, u.nr - 1 as at, lag(u.key) over (order by u.nr) as before
                               from unnest(r.keys) with ordinality u(key, nr)) k
        where k.at > 0 and k.key <> k.before and (k.key = any (lined) or k.before = any (lined)));
    if cuts = '{}' then
        update trunkline."queue_orders" q set line = q.keys[1] where q.id = row_id and q.keys[1] = any (lined);
    else
        perform trunkline."do_split_orders"(row_id, cuts, lined);
    end if;
end ;

function do_pick_emails(ids bigint[], leased boolean, OUT first bigint[], OUT sizes integer[], OUT busy bigint[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    r trunkline."queue_emails"%rowtype;
    wide record;
    skipped bigint;
    resting bigint[];
    lanes smallint[];
    lines text[];
begin
    first := '{}';
    sizes := '{}';
    busy := '{}';
    if false then
        -- A worker that leases along a partition skips rows that this call locks, and must not
        -- receive the messages behind them first. So this call locks the partitions. Messages of a
        -- partition that another session has locked are busy.
        with met as materialized (
            select distinct i.id, -1 - q.lane as lane from unnest(ids) i(id), lateral (
                select b.lane, b.id + b.size as stop from trunkline."queue_emails" b
                where b.id <= i.id and b.id >= i.id / 1024 * 1024 order by b.id desc limit 1) q
            where i.id < q.stop
        ), free as materialized (
            select h.lane from trunkline."lane_emails" h where h.lane in (select m.lane from met m) order by h.lane for update skip locked
        )
        select array(select m.id from met m where m.lane <> all (array(select f.lane from free f))) into busy;
        if busy <> '{}' then
            ids := array(select i.id from unnest(ids) i(id) except select b.id from unnest(busy) b(id));
        end if;
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
            -- Another session has locked, taken or split the row in the meantime. The caller may try again with a fresh
            -- snapshot.
            for skipped in select k from unnest(wide.runs, wide.sizes) d(id, size), generate_series(d.id, d.id + d.size - 1) k loop
                busy := busy || skipped;
            end loop;
        elsif leased or r.attempt = 0 or r.error is not null or r.due_at <= clock_timestamp() then
            if wide.named < wide.size then
                perform trunkline."do_split_emails"(wide.id, array(
                    select (e.at - wide.id)::int from unnest(wide.runs, wide.sizes) d(id, size), lateral (values (d.id), (d.id + d.size)) e(at)));
            end if;
            for k in 1..cardinality(wide.runs) loop
                first := first || wide.runs[k];
                sizes := sizes || wide.sizes[k];
            end loop;
        end if;
    end loop;
    if false and first <> '{}' then
        -- Each key waits for its failed messages. If the caller ends some of them or makes them due sooner, the key
        -- waits for the others. If another session has locked the key's backlog, because a message of the key failed,
        -- the messages are busy.
        with waiting as materialized (
            select d.id, q.lane, q.line from unnest(first) d(id) join trunkline."queue_emails" q on q.id = d.id
            where q.line <> '' and q.error is not null and q.due_at > clock_timestamp()
        ), free as materialized (
            select l.lane, l.key from trunkline."line_emails" l
            where (l.lane, l.key) in (select w.lane, w.line from waiting w) order by l.lane, l.key for update skip locked
        )
        select array_agg(w.id) filter (where f.key is null), array_agg(w.lane) filter (where f.key is not null),
               array_agg(w.line) filter (where f.key is not null)
        into resting, lanes, lines
        from waiting w left join free f on f.lane = w.lane and f.key = w.line;
        if resting is not null then
            busy := busy || array(
                select k from unnest(first, sizes) d(id, size), generate_series(d.id, d.id + d.size - 1) k
                where (d.id in (select w.id from unnest(resting) w(id))) is true); -- hashed; without `is true`, a nested loop
            select coalesce(array_agg(d.id), '{}'), coalesce(array_agg(d.size), '{}') into first, sizes
            from unnest(first, sizes) d(id, size) where d.id not in (select w.id from unnest(resting) w(id));
        end if;
        if lanes is not null then
            -- A failed message that was rescheduled holds up no other: its place in the order is
            -- behind them.
            update trunkline."line_emails" l set until = coalesce((
                select max(q.due_at) from trunkline."queue_emails" q
                where q.lane = l.lane and q.line = l.key and q.place <= clock_timestamp() and q.error is not null and q.due_at > clock_timestamp()
                  and q.id not in (select k from unnest(first, sizes) d(id, size), generate_series(d.id, d.id + d.size - 1) k)), '-infinity')
            where (l.lane, l.key) in (select u.lane, u.line from unnest(lanes, lines) u(lane, line));
        end if;
    end if;
end ;

function do_pick_orders(ids bigint[], leased boolean, OUT first bigint[], OUT sizes integer[], OUT busy bigint[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    r trunkline."queue_orders"%rowtype;
    wide record;
    skipped bigint;
    resting bigint[];
    lanes smallint[];
    lines text[];
begin
    first := '{}';
    sizes := '{}';
    busy := '{}';
    if true then
        -- A worker that leases along a partition skips rows that this call locks, and must not
        -- receive the messages behind them first. So this call locks the partitions. Messages of a
        -- partition that another session has locked are busy.
        with met as materialized (
            select distinct i.id, -1 - q.lane as lane from unnest(ids) i(id), lateral (
                select b.lane, b.id + b.size as stop from trunkline."queue_orders" b
                where b.id <= i.id and b.id >= i.id / 1024 * 1024 order by b.id desc limit 1) q
            where i.id < q.stop
        ), free as materialized (
            select h.lane from trunkline."lane_orders" h where h.lane in (select m.lane from met m) order by h.lane for update skip locked
        )
        select array(select m.id from met m where m.lane <> all (array(select f.lane from free f))) into busy;
        if busy <> '{}' then
            ids := array(select i.id from unnest(ids) i(id) except select b.id from unnest(busy) b(id));
        end if;
    end if;
    for wide in
        with asked as (
            select distinct i.id from unnest(ids) i(id) where i.id >= 0
        ), mark as materialized (
            select a.id as at, null::bigint[] as begun from asked a
            union all
            select q.id, array[q.id, q.size]
            from (select distinct a.id / 1024 * 1024 as id from asked a) block,
                 lateral (select q.id, q.size from trunkline."queue_orders" q
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
        select * into r from trunkline."queue_orders" q where q.id = wide.id for update skip locked;
        if not found or r.size <> wide.size then
            -- Another session has locked, taken or split the row in the meantime. The caller may try again with a fresh
            -- snapshot.
            for skipped in select k from unnest(wide.runs, wide.sizes) d(id, size), generate_series(d.id, d.id + d.size - 1) k loop
                busy := busy || skipped;
            end loop;
        elsif leased or r.attempt = 0 or r.error is not null or r.due_at <= clock_timestamp() then
            if wide.named < wide.size then
                perform trunkline."do_split_orders"(wide.id, array(
                    select (e.at - wide.id)::int from unnest(wide.runs, wide.sizes) d(id, size), lateral (values (d.id), (d.id + d.size)) e(at)));
            end if;
            for k in 1..cardinality(wide.runs) loop
                first := first || wide.runs[k];
                sizes := sizes || wide.sizes[k];
            end loop;
        end if;
    end loop;
    if true and first <> '{}' then
        -- Each key waits for its failed messages. If the caller ends some of them or makes them due sooner, the key
        -- waits for the others. If another session has locked the key's backlog, because a message of the key failed,
        -- the messages are busy.
        with waiting as materialized (
            select d.id, q.lane, q.line from unnest(first) d(id) join trunkline."queue_orders" q on q.id = d.id
            where q.line <> '' and q.error is not null and q.due_at > clock_timestamp()
        ), free as materialized (
            select l.lane, l.key from trunkline."line_orders" l
            where (l.lane, l.key) in (select w.lane, w.line from waiting w) order by l.lane, l.key for update skip locked
        )
        select array_agg(w.id) filter (where f.key is null), array_agg(w.lane) filter (where f.key is not null),
               array_agg(w.line) filter (where f.key is not null)
        into resting, lanes, lines
        from waiting w left join free f on f.lane = w.lane and f.key = w.line;
        if resting is not null then
            busy := busy || array(
                select k from unnest(first, sizes) d(id, size), generate_series(d.id, d.id + d.size - 1) k
                where (d.id in (select w.id from unnest(resting) w(id))) is true); -- hashed; without `is true`, a nested loop
            select coalesce(array_agg(d.id), '{}'), coalesce(array_agg(d.size), '{}') into first, sizes
            from unnest(first, sizes) d(id, size) where d.id not in (select w.id from unnest(resting) w(id));
        end if;
        if lanes is not null then
            -- A failed message that was rescheduled holds up no other: its place in the order is
            -- behind them.
            update trunkline."line_orders" l set until = coalesce((
                select max(q.due_at) from trunkline."queue_orders" q
                where q.lane = l.lane and q.line = l.key and q.place <= clock_timestamp() and q.error is not null and q.due_at > clock_timestamp()
                  and q.id not in (select k from unnest(first, sizes) d(id, size), generate_series(d.id, d.id + d.size - 1) k)), '-infinity')
            where (l.lane, l.key) in (select u.lane, u.line from unnest(lanes, lines) u(lane, line));
        end if;
    end if;
end ;

function do_pick_tasks(ids bigint[], leased boolean, OUT first bigint[], OUT sizes integer[], OUT busy bigint[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    r trunkline."queue_tasks"%rowtype;
    wide record;
    skipped bigint;
    resting bigint[];
    lanes smallint[];
    lines text[];
begin
    first := '{}';
    sizes := '{}';
    busy := '{}';
    if false then
        -- A worker that leases along a partition skips rows that this call locks, and must not
        -- receive the messages behind them first. So this call locks the partitions. Messages of a
        -- partition that another session has locked are busy.
        with met as materialized (
            select distinct i.id, -1 - q.lane as lane from unnest(ids) i(id), lateral (
                select b.lane, b.id + b.size as stop from trunkline."queue_tasks" b
                where b.id <= i.id and b.id >= i.id / 1024 * 1024 order by b.id desc limit 1) q
            where i.id < q.stop
        ), free as materialized (
            select h.lane from trunkline."lane_tasks" h where h.lane in (select m.lane from met m) order by h.lane for update skip locked
        )
        select array(select m.id from met m where m.lane <> all (array(select f.lane from free f))) into busy;
        if busy <> '{}' then
            ids := array(select i.id from unnest(ids) i(id) except select b.id from unnest(busy) b(id));
        end if;
    end if;
    for wide in
        with asked as (
            select distinct i.id from unnest(ids) i(id) where i.id >= 0
        ), mark as materialized (
            select a.id as at, null::bigint[] as begun from asked a
            union all
            select q.id, array[q.id, q.size]
            from (select distinct a.id / 1024 * 1024 as id from asked a) block,
                 lateral (select q.id, q.size from trunkline."queue_tasks" q
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
        select * into r from trunkline."queue_tasks" q where q.id = wide.id for update skip locked;
        if not found or r.size <> wide.size then
            -- Another session has locked, taken or split the row in the meantime. The caller may try again with a fresh
            -- snapshot.
            for skipped in select k from unnest(wide.runs, wide.sizes) d(id, size), generate_series(d.id, d.id + d.size - 1) k loop
                busy := busy || skipped;
            end loop;
        elsif leased or r.attempt = 0 or r.error is not null or r.due_at <= clock_timestamp() then
            if wide.named < wide.size then
                perform trunkline."do_split_tasks"(wide.id, array(
                    select (e.at - wide.id)::int from unnest(wide.runs, wide.sizes) d(id, size), lateral (values (d.id), (d.id + d.size)) e(at)));
            end if;
            for k in 1..cardinality(wide.runs) loop
                first := first || wide.runs[k];
                sizes := sizes || wide.sizes[k];
            end loop;
        end if;
    end loop;
    if false and first <> '{}' then
        -- Each key waits for its failed messages. If the caller ends some of them or makes them due sooner, the key
        -- waits for the others. If another session has locked the key's backlog, because a message of the key failed,
        -- the messages are busy.
        with waiting as materialized (
            select d.id, q.lane, q.line from unnest(first) d(id) join trunkline."queue_tasks" q on q.id = d.id
            where q.line <> '' and q.error is not null and q.due_at > clock_timestamp()
        ), free as materialized (
            select l.lane, l.key from trunkline."line_tasks" l
            where (l.lane, l.key) in (select w.lane, w.line from waiting w) order by l.lane, l.key for update skip locked
        )
        select array_agg(w.id) filter (where f.key is null), array_agg(w.lane) filter (where f.key is not null),
               array_agg(w.line) filter (where f.key is not null)
        into resting, lanes, lines
        from waiting w left join free f on f.lane = w.lane and f.key = w.line;
        if resting is not null then
            busy := busy || array(
                select k from unnest(first, sizes) d(id, size), generate_series(d.id, d.id + d.size - 1) k
                where (d.id in (select w.id from unnest(resting) w(id))) is true); -- hashed; without `is true`, a nested loop
            select coalesce(array_agg(d.id), '{}'), coalesce(array_agg(d.size), '{}') into first, sizes
            from unnest(first, sizes) d(id, size) where d.id not in (select w.id from unnest(resting) w(id));
        end if;
        if lanes is not null then
            -- A failed message that was rescheduled holds up no other: its place in the order is
            -- behind them.
            update trunkline."line_tasks" l set until = coalesce((
                select max(q.due_at) from trunkline."queue_tasks" q
                where q.lane = l.lane and q.line = l.key and q.place <= clock_timestamp() and q.error is not null and q.due_at > clock_timestamp()
                  and q.id not in (select k from unnest(first, sizes) d(id, size), generate_series(d.id, d.id + d.size - 1) k)), '-infinity')
            where (l.lane, l.key) in (select u.lane, u.line from unnest(lanes, lines) u(lane, line));
        end if;
    end if;
end ;

function do_release_emails(ids bigint[], sizes integer[], attempts integer[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with held as (
            update trunkline."queue_emails" q set due_at = trunkline.clock(), released = q.released + 1, error = ''
            from unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.size, d.attempt as under)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_emails"(ids, sizes, attempts, true);
    end loop;
end ;

function do_release_orders(ids bigint[], sizes integer[], attempts integer[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with held as (
            update trunkline."queue_orders" q set due_at = trunkline.clock(), released = q.released + 1, error = ''
            from unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.size, d.attempt as under)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_orders"(ids, sizes, attempts, true);
    end loop;
end ;

function do_release_tasks(ids bigint[], sizes integer[], attempts integer[]) returns TABLE(id bigint, size integer, attempt integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with held as (
            update trunkline."queue_tasks" q set due_at = trunkline.clock(), released = q.released + 1, error = ''
            from unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.size, d.attempt as under)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_tasks"(ids, sizes, attempts, true);
    end loop;
end ;

function do_replace_tasks(payloads text[], dues double precision[], metadata jsonb[], keys text[], holders bigint[], lasts integer[]) returns boolean[] language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    done bool[];
    asked bigint[];
    nrs int[];
    busy bigint[];
    picked record;
    message bigint;
    at int;
    nr int;
    due timestamptz;
    part pg_catalog.text[];
    beside jsonb[];
    size int;
begin
    select array_agg(h.holder order by h.holder), array_agg(h.nr order by h.holder) into asked, nrs
    from unnest(holders, lasts) with ordinality h(holder, last, nr) where h.holder is not null and h.last = h.nr;
    busy := asked;
    for pass in 1..20 loop
        picked := trunkline."do_pick_tasks"(busy, false);
        at := 1;
        for message in
            select d.id + k from unnest(picked.first, picked.sizes) d(id, size), generate_series(0, d.size - 1) k order by 1
        loop
            while asked[at] < message loop
                at := at + 1;
            end loop;
            nr := nrs[at];
            size := (select q.size from trunkline."queue_tasks" q where q.id = message);
            if size > 1 then
                perform trunkline."do_split_tasks"(message, array(select generate_series(1, size)));
            end if;
            part := '{}';
            part[1] := payloads[nr];
            beside := null;
            if metadata[nr] is not null then
                beside[1] := metadata[nr];
            end if;
            due := case when dues[nr] >= 0 then clock_timestamp() + dues[nr] * interval '1 second' else to_timestamp(-dues[nr]) end;
            update trunkline."queue_tasks" q
            set payload = part, metadata = beside,
                due_at = case when due > clock_timestamp() then due else least(q.due_at, trunkline.clock()) end,
                error = case when q.attempt > 0 and due > clock_timestamp() then coalesce(q.error, 'the lease expired') else q.error end
            where q.id = message;
            done[nr] := true;
        end loop;
        busy := picked.busy;
        exit when cardinality(busy) = 0;
        perform pg_sleep(0.005);
    end loop;
    if exists (select from unnest(nrs, asked) a(nr, holder)
               where done[a.nr] is null and not exists (
                   select from trunkline."unique_tasks" u where u.key = keys[a.nr] and u.id = a.holder)) then
        raise exception sqlstate 'TL000';
    end if;
    return done;
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
                error = case when q.attempt > 0 and due > clock_timestamp() then coalesce(q.error, 'the lease expired') else q.error end
            from unnest(picked.first, picked.sizes) d(id, size)
            where q.id >= d.id and q.id < d.id + d.size
            returning q.id, q.size)
        select m.id + k, true from moved m, generate_series(0, m.size - 1) k;
    return query select b, false from unnest(picked.busy) b;
end ;

function do_reschedule_orders(ids bigint[], due timestamp with time zone) returns TABLE(id bigint, done boolean) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    picked record;
begin
    if due is null or due > clock_timestamp() + interval '36500 days' then
        raise exception 'a due time of % is out of bounds', coalesce(due::text, 'null') using errcode = 'invalid_parameter_value',
            hint = 'A message is due at most 36500 days from now; a time that has passed means now.';
    end if;
    picked := trunkline."do_pick_orders"(ids, false);
    return query
        with moved as (
            update trunkline."queue_orders" q
            set due_at = case when due > clock_timestamp() then due else least(q.due_at, trunkline.clock()) end,
                place = case when due > clock_timestamp() then due else least(q.place, trunkline.clock()) end,
                error = case when q.attempt > 0 and due > clock_timestamp() then coalesce(q.error, 'the lease expired') else q.error end
            from unnest(picked.first, picked.sizes) d(id, size)
            where q.id >= d.id and q.id < d.id + d.size
            returning q.id, q.size)
        select m.id + k, true from moved m, generate_series(0, m.size - 1) k;
    return query select b, false from unnest(picked.busy) b;
end ;

function do_reschedule_tasks(ids bigint[], due timestamp with time zone) returns TABLE(id bigint, done boolean) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    picked record;
begin
    if due is null or due > clock_timestamp() + interval '36500 days' then
        raise exception 'a due time of % is out of bounds', coalesce(due::text, 'null') using errcode = 'invalid_parameter_value',
            hint = 'A message is due at most 36500 days from now; a time that has passed means now.';
    end if;
    picked := trunkline."do_pick_tasks"(ids, false);
    return query
        with moved as (
            update trunkline."queue_tasks" q
            set due_at = case when due > clock_timestamp() then due else least(q.due_at, trunkline.clock()) end,
                error = case when q.attempt > 0 and due > clock_timestamp() then coalesce(q.error, 'the lease expired') else q.error end
            from unnest(picked.first, picked.sizes) d(id, size)
            where q.id >= d.id and q.id < d.id + d.size
            returning q.id, q.size)
        select m.id + k, true from moved m, generate_series(0, m.size - 1) k;
    return query select b, false from unnest(picked.busy) b;
end ;

function do_retry_emails(ids bigint[], sizes integer[], attempts integer[], delays interval[], errors text[]) returns TABLE(id bigint, size integer, attempt integer, dead boolean) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with failed as materialized (
            select d.nr, q.ctid as tid, q.attempt as under, q.attempt as attempt,
                   q.attempt - q.released >= 10 as spent, d.delay, d.error
            from unnest(ids, sizes, attempts, delays, errors) with ordinality d(id, size, attempt, delay, error, nr)
            join trunkline."queue_emails" q
              on q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size and q.attempt = d.attempt
             and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            for update of q
        ), again as (
            update trunkline."queue_emails" q
            set due_at = greatest(trunkline.clock() + f.delay, trunkline.clock()), attempt = f.attempt, error = coalesce(f.error, '')
            from failed f where q.ctid = f.tid and not f.spent
            returning f.nr, q.id, q.size, f.under
        ), gone as (
            delete from trunkline."queue_emails" q using failed f where q.ctid = f.tid and f.spent
            returning f.nr, q.id, q.enqueued_at, q.size, q.payload, q.metadata, trunkline."do_kept_emails"(q.*) as own,
                      f.under, f.attempt - q.released as charged, q.released, f.error as reason
        ), dead as (
            insert into trunkline."dead_emails" (id, enqueued_at, attempt, released, error, payload, metadata, own)
            select g.id + m.k, g.enqueued_at, g.charged, g.released, coalesce(g.reason, ''), m.payload, m.metadata, trunkline."do_keptof_emails"(g.own, m.k)
            from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m
            where m.k is not null
        ), held as (
            select a.nr, a.id, a.size, a.under, false as dead from again a union all select g.nr, g.id, g.size, g.under, true from gone g)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               array_agg(h.dead) as died, coalesce(sum(h.size), 0) as size
        into met from held h;
        -- Reads the setting from the table, because it may have changed while the call waited for a
        -- lock.
        if false and (select q.per_key = 1 from trunkline.queue q where q.name = 'emails') then
            perform trunkline."do_hold_emails"(met.ids, met.sizes);
        end if;
        return query select * from unnest(met.ids, met.sizes, met.attempts, met.died);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        delays := array(select delays[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        errors := array(select errors[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_emails"(ids, sizes, attempts, true);
    end loop;
end ;

function do_retry_orders(ids bigint[], sizes integer[], attempts integer[], delays interval[], errors text[]) returns TABLE(id bigint, size integer, attempt integer, dead boolean) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with failed as materialized (
            select d.nr, q.ctid as tid, q.attempt as under, q.attempt as attempt,
                   q.attempt - q.released >= 10 as spent, d.delay, d.error
            from unnest(ids, sizes, attempts, delays, errors) with ordinality d(id, size, attempt, delay, error, nr)
            join trunkline."queue_orders" q
              on q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size and q.attempt = d.attempt
             and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            for update of q
        ), again as (
            update trunkline."queue_orders" q
            set due_at = greatest(trunkline.clock() + f.delay, trunkline.clock()), attempt = f.attempt, error = coalesce(f.error, '')
            from failed f where q.ctid = f.tid and not f.spent
            returning f.nr, q.id, q.size, f.under
        ), gone as (
            delete from trunkline."queue_orders" q using failed f where q.ctid = f.tid and f.spent
            returning f.nr, q.id, q.enqueued_at, q.size, q.payload, q.metadata, trunkline."do_kept_orders"(q.*) as own,
                      f.under, f.attempt - q.released as charged, q.released, f.error as reason
        ), dead as (
            insert into trunkline."dead_orders" (id, enqueued_at, attempt, released, error, payload, metadata, own)
            select g.id + m.k, g.enqueued_at, g.charged, g.released, coalesce(g.reason, ''), m.payload, m.metadata, trunkline."do_keptof_orders"(g.own, m.k)
            from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m
            where m.k is not null
        ), held as (
            select a.nr, a.id, a.size, a.under, false as dead from again a union all select g.nr, g.id, g.size, g.under, true from gone g)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               array_agg(h.dead) as died, coalesce(sum(h.size), 0) as size
        into met from held h;
        -- Reads the setting from the table, because it may have changed while the call waited for a
        -- lock.
        if true and (select q.per_key = 1 from trunkline.queue q where q.name = 'orders') then
            perform trunkline."do_hold_orders"(met.ids, met.sizes);
        end if;
        return query select * from unnest(met.ids, met.sizes, met.attempts, met.died);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        delays := array(select delays[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        errors := array(select errors[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_orders"(ids, sizes, attempts, true);
    end loop;
end ;

function do_retry_tasks(ids bigint[], sizes integer[], attempts integer[], delays interval[], errors text[]) returns TABLE(id bigint, size integer, attempt integer, dead boolean) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with failed as materialized (
            select d.nr, q.ctid as tid, q.attempt as under, q.attempt as attempt,
                   q.attempt - q.released >= 10 as spent, d.delay, d.error
            from unnest(ids, sizes, attempts, delays, errors) with ordinality d(id, size, attempt, delay, error, nr)
            join trunkline."queue_tasks" q
              on q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size and q.attempt = d.attempt
             and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            for update of q
        ), again as (
            update trunkline."queue_tasks" q
            set due_at = greatest(trunkline.clock() + f.delay, trunkline.clock()), attempt = f.attempt, error = coalesce(f.error, '')
            from failed f where q.ctid = f.tid and not f.spent
            returning f.nr, q.id, q.size, f.under
        ), gone as (
            delete from trunkline."queue_tasks" q using failed f where q.ctid = f.tid and f.spent
            returning f.nr, q.id, q.enqueued_at, q.size, q.payload, q.metadata, trunkline."do_kept_tasks"(q.*) as own,
                      f.under, f.attempt - q.released as charged, q.released, f.error as reason
        ), dead as (
            insert into trunkline."dead_tasks" (id, enqueued_at, attempt, released, error, payload, metadata, own)
            select g.id + m.k, g.enqueued_at, g.charged, g.released, coalesce(g.reason, ''), m.payload, m.metadata, trunkline."do_keptof_tasks"(g.own, m.k)
            from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m
            where m.k is not null
        ), held as (
            select a.nr, a.id, a.size, a.under, false as dead from again a union all select g.nr, g.id, g.size, g.under, true from gone g)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               array_agg(h.dead) as died, coalesce(sum(h.size), 0) as size
        into met from held h;
        -- Reads the setting from the table, because it may have changed while the call waited for a
        -- lock.
        if false and (select q.per_key = 1 from trunkline.queue q where q.name = 'tasks') then
            perform trunkline."do_hold_tasks"(met.ids, met.sizes);
        end if;
        return query select * from unnest(met.ids, met.sizes, met.attempts, met.died);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        delays := array(select delays[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        errors := array(select errors[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline."do_carve_tasks"(ids, sizes, attempts, true);
    end loop;
end ;

function do_right_emails(how integer, ahead interval DEFAULT NULL::interval) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan row_security=on as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
    longest constant interval := '8808 hours'; -- see check_lease
    messages bigint;
begin
    if how = 0 and not trunkline."do_wrong_emails"() then
        return 0;
    end if;
    clock := trunkline.clock();
    ahead := greatest(ahead, (select max(q.enqueued_at) - clock from trunkline."queue_emails" q
                              where q.due_at > clock and q.enqueued_at > clock_timestamp() + interval '1 minute'));
    with late as materialized (
        select q.ctid as tid,
               case when q.attempt > 0 and q.error is null then
                        least(case when q.enqueued_at > clock then q.due_at - (q.enqueued_at - clock)
                                   when q.due_at > clock + longest then clock + interval '00:00:30' else q.due_at end,
                              case when how = 2 then clock + interval '00:00:30' else 'infinity' end)
                    when q.enqueued_at > clock then greatest(q.due_at - (q.enqueued_at - clock), clock)
                    when q.due_at - ahead <= clock + longest then greatest(q.due_at - ahead, clock)
                    else clock end as due_at
        from trunkline."queue_emails" q
        where q.due_at > clock
          and (q.enqueued_at > clock
               or q.attempt > 0 and q.due_at > clock + case when q.error is null then longest else least(longest, ahead / 2) end
               or how = 2 and q.attempt > 0 and q.error is null and q.due_at > clock + interval '00:00:30')
        order by q.id for update skip locked
    ), put as (
        update trunkline."queue_emails" q
        set due_at = a.due_at, enqueued_at = least(q.enqueued_at, clock)
        from late a where q.ctid = a.tid
        returning q.size)
    select coalesce(sum(p.size), 0) into messages from put p;
    if false then
        update trunkline."unique_emails" u set until = clock + (u.until - u.claimed_at), claimed_at = clock
        where u.key = any (array(select a.key from trunkline."unique_emails" a where a.claimed_at > clock for update skip locked));
    end if;
    if false then
        update trunkline.bucket b set filled_at = clock where b.queue = 'emails' and b.filled_at > clock;
    end if;
    if messages > 0 then
        perform pg_notify('trunkline.emails', '');
    end if;
    return messages;
end ;

function do_right_orders(how integer, ahead interval DEFAULT NULL::interval) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan row_security=on as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
    -- a partition is held for 1.5 times the longest lease, and its leases may last as long
    longest constant interval := interval '8808 hours' * 1.5; -- see check_lease
    -- With a rate, a key rests at most until a worker's maximum number of messages of the key, plus
    -- the contents of its bucket, may have started. Without a rate it rests for a moment.
    longest_rest constant interval := case when null::float8 is null then interval '1 second'
        else least((64 + null::float8) / null::float8, 31536000) * interval '1 second' end;
    kept timestamptz;
    messages bigint;
begin
    if how = 0 and not trunkline."do_wrong_orders"() then
        return 0;
    end if;
    clock := trunkline.clock();
    if has_column_privilege('trunkline.floor', 'reached', 'update') and has_column_privilege('trunkline.floor', 'shown', 'update') then
        -- Waits for no lock, because the caller may have locked rows that the other session needs.
        select greatest(f.reached, f.shown) into kept from trunkline.floor f where f.queue = 'orders' for update skip locked;
    end if;
    if kept is null then
        ahead := null;
    else
        -- A session that has just committed may have served a partition after the clock was read.
        ahead := greatest(ahead, case when kept > clock + interval '1 minute' then kept - clock end,
                          (select max(h.served_at) - clock from trunkline."lane_orders" h
                           where h.lane >= 0 and h.served_at > clock_timestamp() + interval '1 s'),
                          (select max(q.enqueued_at) - clock from trunkline."queue_orders" q
                           where q.due_at > clock and q.enqueued_at > clock_timestamp() + interval '1 minute'));
        update trunkline.floor f set reached = case when f.reached <= clock then f.reached else '-infinity' end, shown = clock
        where f.queue = 'orders' and kept > clock;
    end if;
    with late as materialized (
        select q.ctid as tid,
               case when q.attempt > 0 and q.error is null then
                        least(case when q.enqueued_at > clock then q.due_at - (q.enqueued_at - clock)
                                   when q.due_at > clock + longest then clock + interval '00:00:30' else q.due_at end,
                              case when how = 2 then clock + interval '00:00:30' else 'infinity' end)
                    when q.enqueued_at > clock then greatest(q.due_at - (q.enqueued_at - clock), clock)
                    when q.due_at - ahead <= clock + longest then greatest(q.due_at - ahead, clock)
                    else clock end as due_at
        from trunkline."queue_orders" q
        where q.due_at > clock
          and (q.enqueued_at > clock
               or q.attempt > 0 and q.due_at > clock + case when q.error is null then longest else least(longest, ahead / 2) end
               or how = 2 and q.attempt > 0 and q.error is null and q.due_at > clock + interval '00:00:30')
        order by q.id for update skip locked
    ), put as (
        update trunkline."queue_orders" q
        set due_at = a.due_at, enqueued_at = least(q.enqueued_at, clock),
            place = case when q.enqueued_at > clock and q.place > clock then greatest(q.place - (q.enqueued_at - clock), clock) else q.place end
        from late a where q.ctid = a.tid
        returning q.size)
    select coalesce(sum(p.size), 0) into messages from put p;
    with late as materialized (
        select h.lane, h.served_at - clock as ahead from trunkline."lane_orders" h where h.lane >= 0 and h.served_at > clock_timestamp() + interval '1 s'
        order by h.lane for update skip locked)
    update trunkline."lane_orders" h
    set served_at = clock, floor = '-infinity', held_until = h.held_until - a.ahead,
        wanted_until = case when h.wanted_until > clock then h.wanted_until - a.ahead else h.wanted_until end,
        starts_until = case when h.starts_until > clock then h.starts_until - a.ahead else h.starts_until end,
        empty_at = case when h.empty_at > clock then h.empty_at - a.ahead else h.empty_at end
    from late a where h.lane = a.lane;
    update trunkline."queue_orders" q set due_at = o.due_at
    from (select q.ctid as tid, h.held_until as due_at from trunkline."queue_orders" q join trunkline."lane_orders" h on h.lane = q.lane
          where q.due_at > clock and q.attempt > 0 and q.error is null and h.held_until > clock and q.due_at > h.held_until
          order by q.id for update of q skip locked) o
    where q.ctid = o.tid;
    update trunkline."line_orders" l set until = o.until
    from (select l.lane, l.key, greatest(clock + longest_rest, (
                     select max(q.due_at) from trunkline."queue_orders" q
                     where q.lane = l.lane and q.line = l.key and q.error is not null and q.due_at > clock)) as until
          from trunkline."line_orders" l where l.until > clock + longest_rest for update of l skip locked) o
    where l.lane = o.lane and l.key = o.key and l.until > o.until;
    if true then
        update trunkline.bucket b set filled_at = clock where b.queue = 'orders' and b.filled_at > clock;
    end if;
    if messages > 0 then
        perform pg_notify('trunkline.orders', '');
    end if;
    return messages;
end ;

function do_right_tasks(how integer, ahead interval DEFAULT NULL::interval) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan row_security=on as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
    longest constant interval := '8808 hours'; -- see check_lease
    messages bigint;
begin
    if how = 0 and not trunkline."do_wrong_tasks"() then
        return 0;
    end if;
    clock := trunkline.clock();
    ahead := greatest(ahead, (select max(q.enqueued_at) - clock from trunkline."queue_tasks" q
                              where q.due_at > clock and q.enqueued_at > clock_timestamp() + interval '1 minute'));
    with late as materialized (
        select q.ctid as tid,
               case when q.attempt > 0 and q.error is null then
                        least(case when q.enqueued_at > clock then q.due_at - (q.enqueued_at - clock)
                                   when q.due_at > clock + longest then clock + interval '00:00:30' else q.due_at end,
                              case when how = 2 then clock + interval '00:00:30' else 'infinity' end)
                    when q.enqueued_at > clock then greatest(q.due_at - (q.enqueued_at - clock), clock)
                    when q.due_at - ahead <= clock + longest then greatest(q.due_at - ahead, clock)
                    else clock end as due_at
        from trunkline."queue_tasks" q
        where q.due_at > clock
          and (q.enqueued_at > clock
               or q.attempt > 0 and q.due_at > clock + case when q.error is null then longest else least(longest, ahead / 2) end
               or how = 2 and q.attempt > 0 and q.error is null and q.due_at > clock + interval '00:00:30')
        order by q.id for update skip locked
    ), put as (
        update trunkline."queue_tasks" q
        set due_at = a.due_at, enqueued_at = least(q.enqueued_at, clock)
        from late a where q.ctid = a.tid
        returning q.size)
    select coalesce(sum(p.size), 0) into messages from put p;
    if true then
        update trunkline."unique_tasks" u set until = clock + (u.until - u.claimed_at), claimed_at = clock
        where u.key = any (array(select a.key from trunkline."unique_tasks" a where a.claimed_at > clock for update skip locked));
    end if;
    if false then
        update trunkline.bucket b set filled_at = clock where b.queue = 'tasks' and b.filled_at > clock;
    end if;
    if messages > 0 then
        perform pg_notify('trunkline.tasks', '');
    end if;
    return messages;
end ;

function do_row_tasks(due double precision, size integer, payload text[], metadata jsonb[], lane integer) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
declare
    id bigint;
begin
    insert into trunkline."queue_tasks" as q (due_at, size, payload, metadata, lane)
    values (trunkline.due_from(due), size, payload, metadata, lane)
    returning q.id into id;
    if id is null then
        perform trunkline.not_stored('tasks', size, 0);
    end if;
    return id;
end ;

function do_split_emails(row_id bigint, cuts integer[], lined text[] DEFAULT '{}'::text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
declare
    r trunkline."queue_emails"%rowtype;
    whole pg_catalog.jsonb[];
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
    stored bigint;
begin
    select * into r from trunkline."queue_emails" q where q.id = row_id;
    whole := r.payload;
    whole_metadata := r.metadata;
    if false then
        whole_keys := r.keys;
        whole_line := r.line;
    end if;
    whole_size := r.size;
    if r.error is null and (array_ndims(whole) is distinct from 1 or array_lower(whole, 1) <> 1 or cardinality(whole) <> whole_size
                            or num_nulls(variadic whole) > 0) then
        -- The row is malformed and got past trunkline.refuse_row. That trigger accepts parts of
        -- such a row only if they have an error. A consumer that reads the parts counts an attempt.
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
        if false then
            r.keys := whole_keys[start + 1 : stop];
            r.line := case when r.keys[1] = any (lined) then r.keys[1] else whole_line end;
        end if;
        if num_nonnulls(variadic r.metadata) = 0 then
            r.metadata := null;
        end if;
        if start = 0 then
            if false then
                update trunkline."queue_emails" q
                set size = r.size, payload = r.payload, metadata = r.metadata, error = r.error, keys = r.keys, line = r.line where q.id = row_id;
            else
                update trunkline."queue_emails" q set size = r.size, payload = r.payload, metadata = r.metadata, error = r.error where q.id = row_id;
            end if;
        else
            r.id := row_id + start;
            pieces := pieces || r;
        end if;
        -- A statement for each piece would cost more than the piece, but an array of all pieces
        -- would keep a large row in memory twice.
        if cardinality(pieces) = 64 or stop = whole_size and cardinality(pieces) > 0 then
            if computed then
                -- A generated column that a user added accepts no value, not even the one that it
                -- has.
                written := coalesce(written, (
                    select string_agg(quote_ident(a.attname), ', ' order by a.attnum) from pg_attribute a
                    where a.attrelid = 'trunkline."queue_emails"'::regclass and a.attnum > 0 and not a.attisdropped
                      and a.attgenerated = '' and a.attidentity = ''));
                execute format('insert into trunkline.%I (%s) select %s from unnest($1) p', 'queue_' || 'emails', written, written)
                    using pieces;
            else
                insert into trunkline."queue_emails" select p.* from unnest(pieces) p;
            end if;
            get diagnostics stored = row_count;
            if stored <> cardinality(pieces) then
                perform trunkline.not_stored('emails', whole_size, whole_size - (select sum(p.size) from unnest(pieces) p));
            end if;
            pieces := '{}';
        end if;
        start := stop;
    end loop;
end ;

function do_split_orders(row_id bigint, cuts integer[], lined text[] DEFAULT '{}'::text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
declare
    r trunkline."queue_orders"%rowtype;
    whole trunkline.payload_orders[];
    whole_metadata jsonb[];
    whole_keys text[];
    whole_line text;
    whole_size int;
    ends int[];
    pieces trunkline."queue_orders"[] := '{}';
    start int := 0;
    stop int;
    computed bool := exists (select from pg_attribute a where a.attrelid = 'trunkline."queue_orders"'::regclass and a.attnum > 0
                             and not a.attisdropped and (a.attgenerated <> '' or a.attidentity <> ''));
    written text;
    stored bigint;
begin
    select * into r from trunkline."queue_orders" q where q.id = row_id;
    whole := r.payload;
    whole_metadata := r.metadata;
    if true then
        whole_keys := r.keys;
        whole_line := r.line;
    end if;
    whole_size := r.size;
    if r.error is null and (array_ndims(whole) is distinct from 1 or array_lower(whole, 1) <> 1 or cardinality(whole) <> whole_size
                            or num_nulls(variadic whole) > 0) then
        -- The row is malformed and got past trunkline.refuse_row. That trigger accepts parts of
        -- such a row only if they have an error. A consumer that reads the parts counts an attempt.
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
        if true then
            r.keys := whole_keys[start + 1 : stop];
            r.line := case when r.keys[1] = any (lined) then r.keys[1] else whole_line end;
        end if;
        if num_nonnulls(variadic r.metadata) = 0 then
            r.metadata := null;
        end if;
        if start = 0 then
            if true then
                update trunkline."queue_orders" q
                set size = r.size, payload = r.payload, metadata = r.metadata, error = r.error, keys = r.keys, line = r.line where q.id = row_id;
            else
                update trunkline."queue_orders" q set size = r.size, payload = r.payload, metadata = r.metadata, error = r.error where q.id = row_id;
            end if;
        else
            r.id := row_id + start;
            pieces := pieces || r;
        end if;
        -- A statement for each piece would cost more than the piece, but an array of all pieces
        -- would keep a large row in memory twice.
        if cardinality(pieces) = 64 or stop = whole_size and cardinality(pieces) > 0 then
            if computed then
                -- A generated column that a user added accepts no value, not even the one that it
                -- has.
                written := coalesce(written, (
                    select string_agg(quote_ident(a.attname), ', ' order by a.attnum) from pg_attribute a
                    where a.attrelid = 'trunkline."queue_orders"'::regclass and a.attnum > 0 and not a.attisdropped
                      and a.attgenerated = '' and a.attidentity = ''));
                execute format('insert into trunkline.%I (%s) select %s from unnest($1) p', 'queue_' || 'orders', written, written)
                    using pieces;
            else
                insert into trunkline."queue_orders" select p.* from unnest(pieces) p;
            end if;
            get diagnostics stored = row_count;
            if stored <> cardinality(pieces) then
                perform trunkline.not_stored('orders', whole_size, whole_size - (select sum(p.size) from unnest(pieces) p));
            end if;
            pieces := '{}';
        end if;
        start := stop;
    end loop;
end ;

function do_split_tasks(row_id bigint, cuts integer[], lined text[] DEFAULT '{}'::text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp as 
#variable_conflict use_variable
declare
    r trunkline."queue_tasks"%rowtype;
    whole pg_catalog.text[];
    whole_metadata jsonb[];
    whole_keys text[];
    whole_line text;
    whole_size int;
    ends int[];
    pieces trunkline."queue_tasks"[] := '{}';
    start int := 0;
    stop int;
    computed bool := exists (select from pg_attribute a where a.attrelid = 'trunkline."queue_tasks"'::regclass and a.attnum > 0
                             and not a.attisdropped and (a.attgenerated <> '' or a.attidentity <> ''));
    written text;
    stored bigint;
begin
    select * into r from trunkline."queue_tasks" q where q.id = row_id;
    whole := r.payload;
    whole_metadata := r.metadata;
    if false then
        whole_keys := r.keys;
        whole_line := r.line;
    end if;
    whole_size := r.size;
    if r.error is null and (array_ndims(whole) is distinct from 1 or array_lower(whole, 1) <> 1 or cardinality(whole) <> whole_size
                            or num_nulls(variadic whole) > 0) then
        -- The row is malformed and got past trunkline.refuse_row. That trigger accepts parts of
        -- such a row only if they have an error. A consumer that reads the parts counts an attempt.
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
        if false then
            r.keys := whole_keys[start + 1 : stop];
            r.line := case when r.keys[1] = any (lined) then r.keys[1] else whole_line end;
        end if;
        if num_nonnulls(variadic r.metadata) = 0 then
            r.metadata := null;
        end if;
        if start = 0 then
            if false then
                update trunkline."queue_tasks" q
                set size = r.size, payload = r.payload, metadata = r.metadata, error = r.error, keys = r.keys, line = r.line where q.id = row_id;
            else
                update trunkline."queue_tasks" q set size = r.size, payload = r.payload, metadata = r.metadata, error = r.error where q.id = row_id;
            end if;
        else
            r.id := row_id + start;
            pieces := pieces || r;
        end if;
        -- A statement for each piece would cost more than the piece, but an array of all pieces
        -- would keep a large row in memory twice.
        if cardinality(pieces) = 64 or stop = whole_size and cardinality(pieces) > 0 then
            if computed then
                -- A generated column that a user added accepts no value, not even the one that it
                -- has.
                written := coalesce(written, (
                    select string_agg(quote_ident(a.attname), ', ' order by a.attnum) from pg_attribute a
                    where a.attrelid = 'trunkline."queue_tasks"'::regclass and a.attnum > 0 and not a.attisdropped
                      and a.attgenerated = '' and a.attidentity = ''));
                execute format('insert into trunkline.%I (%s) select %s from unnest($1) p', 'queue_' || 'tasks', written, written)
                    using pieces;
            else
                insert into trunkline."queue_tasks" select p.* from unnest(pieces) p;
            end if;
            get diagnostics stored = row_count;
            if stored <> cardinality(pieces) then
                perform trunkline.not_stored('tasks', whole_size, whole_size - (select sum(p.size) from unnest(pieces) p));
            end if;
            pieces := '{}';
        end if;
        start := stop;
    end loop;
end ;

function do_stray_emails(floor timestamp with time zone, low tid, high tid) returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_indexscan=off enable_indexonlyscan=off enable_bitmapscan=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
begin
    return (select min(q.due_at) from trunkline."queue_emails" q where q.ctid >= low and q.ctid < high and q.due_at < floor);
end ;

function do_stray_orders(floor timestamp with time zone, low tid, high tid) returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_indexscan=off enable_indexonlyscan=off enable_bitmapscan=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
begin
    return (select min(q.due_at) from trunkline."queue_orders" q where q.ctid >= low and q.ctid < high and q.due_at < floor);
end ;

function do_stray_tasks(floor timestamp with time zone[], low tid, high tid) returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_indexscan=off enable_indexonlyscan=off enable_bitmapscan=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
begin
    return (select min(q.due_at) from trunkline."queue_tasks" q where q.ctid >= low and q.ctid < high and q.due_at < floor[q.lane + 1]);
end ;

function do_sweep_emails(floor timestamp with time zone, page bigint) returns TABLE(stray timestamp with time zone, next_page bigint, cost double precision) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    pages constant int := 64;
    began timestamptz := clock_timestamp();
begin
    if coalesce(page, 0) = 0 and pg_stat_get_dead_tuples('trunkline."queue_emails"'::regclass) < 5000 then
        select q.due_at into stray from trunkline."queue_emails" q order by q.due_at, q.id + 0 limit 1;
        stray := case when stray < floor then stray end;
        next_page := 0;
    else
        page := coalesce(page, (floor(random() * (pg_relation_size('trunkline."queue_emails"'::regclass)
                                                  / current_setting('block_size')::bigint) / pages) * pages)::bigint);
        stray := trunkline."do_stray_emails"(floor, format('(%s,0)', page)::tid, format('(%s,0)', page + pages)::tid);
        next_page := case when (page + pages) * current_setting('block_size')::bigint
                               < pg_relation_size('trunkline."queue_emails"'::regclass) then page + pages else 0 end;
    end if;
    cost := extract(epoch from clock_timestamp() - began);
    return next;
end ;

function do_sweep_orders(floor timestamp with time zone, page bigint) returns TABLE(stray timestamp with time zone, next_page bigint, cost double precision) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    pages constant int := 64;
    began timestamptz := clock_timestamp();
begin
    if coalesce(page, 0) = 0 and pg_stat_get_dead_tuples('trunkline."queue_orders"'::regclass) < 5000 then
        select q.due_at into stray from trunkline."queue_orders" q order by q.due_at, q.id + 0 limit 1;
        stray := case when stray < floor then stray end;
        next_page := 0;
        perform trunkline."do_lower_orders"(null, null);
    else
        page := coalesce(page, (floor(random() * (pg_relation_size('trunkline."queue_orders"'::regclass)
                                                  / current_setting('block_size')::bigint) / pages) * pages)::bigint);
        stray := trunkline."do_stray_orders"(floor, format('(%s,0)', page)::tid, format('(%s,0)', page + pages)::tid);
        perform trunkline."do_lower_orders"(format('(%s,0)', page)::tid, format('(%s,0)', page + pages)::tid);
        next_page := case when (page + pages) * current_setting('block_size')::bigint
                               < pg_relation_size('trunkline."queue_orders"'::regclass) then page + pages else 0 end;
    end if;
    cost := extract(epoch from clock_timestamp() - began);
    return next;
end ;

function do_sweep_tasks(floor timestamp with time zone[], page bigint) returns TABLE(stray timestamp with time zone, next_page bigint, cost double precision) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    pages constant int := 64;
    began timestamptz := clock_timestamp();
begin
    if coalesce(page, 0) = 0 and pg_stat_get_dead_tuples('trunkline."queue_tasks"'::regclass) < 5000 then
        stray := (select min(o.due_at) from generate_series(0, 4 - 1) l(lane),
                         lateral (select q.due_at from trunkline."queue_tasks" q where q.lane = l.lane order by q.due_at, q.id + 0 limit 1) o
                  where o.due_at < floor[l.lane + 1]);
        next_page := 0;
    else
        page := coalesce(page, (floor(random() * (pg_relation_size('trunkline."queue_tasks"'::regclass)
                                                  / current_setting('block_size')::bigint) / pages) * pages)::bigint);
        stray := trunkline."do_stray_tasks"(floor, format('(%s,0)', page)::tid, format('(%s,0)', page + pages)::tid);
        next_page := case when (page + pages) * current_setting('block_size')::bigint
                               < pg_relation_size('trunkline."queue_tasks"'::regclass) then page + pages else 0 end;
    end if;
    cost := extract(epoch from clock_timestamp() - began);
    return next;
end ;

function do_take_emails(n integer, floor timestamp with time zone DEFAULT '-infinity'::timestamp with time zone, rows integer DEFAULT 1, cut boolean DEFAULT true, keep boolean DEFAULT false) returns TABLE(id bigint, attempt integer, size integer, enqueued_at timestamp with time zone, payload jsonb[], metadata jsonb[], released integer, error text, own jsonb) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    at record;
    due timestamptz := floor;
    until timestamptz := clock_timestamp();
    next_id bigint := 0;
    marked bool;
    to_bury int;
    stops bool;
    used int := 0;
begin
    if false then
        n := trunkline."do_allowed_emails"(n, true);
    end if;
    if cut and n between 1 and abs(rows) and not false and not false then
        -- The usual case if messages are few: all due rows can be taken whole, with one statement.
        if n = 1 then
            -- The general form below sums sizes and sorts its result. For one message, neither is needed,
            -- and both together would make the statement 30 % slower.
            return query
                delete from trunkline."queue_emails" q
                where q.ctid = (select h.ctid from trunkline."queue_emails" h where (h.due_at, h.id + 0) >= (due, 0) and h.due_at <= until
                                order by h.due_at, h.id + 0 limit 1 for update skip locked)
                  and q.size = 1 and q.attempt - q.released < 10
                returning q.id, q.attempt, q.size, q.enqueued_at, q.payload, q.metadata, q.released, q.error,
                          case when keep then trunkline."do_kept_emails"(q.*) end;
        else
            return query
                with head as materialized (
                    select q.ctid as tid, q.due_at, q.id, q.size,
                           q.attempt - q.released >= 10 or q.attempt > 0 and q.error is null and q.size > 1 as awkward
                    from trunkline."queue_emails" q where (q.due_at, q.id + 0) >= (due, 0) and q.due_at <= until
                    order by q.due_at, q.id + 0 limit abs(rows) for update skip locked
                ), whole as materialized (
                    select sum(h.size) <= n and not bool_or(h.awkward) as fits from head h
                ), gone as (
                    delete from trunkline."queue_emails" q using head h, whole w where w.fits and q.ctid = h.tid
                    returning q.due_at, q.id, q.attempt, q.size, q.enqueued_at, q.payload, q.metadata, q.released, q.error,
                              case when keep then trunkline."do_kept_emails"(q.*) end as own)
                select g.id, g.attempt, g.size, g.enqueued_at, g.payload, g.metadata, g.released, g.error, g.own
                from gone g order by g.due_at, g.id;
        end if;
        if found then
            return;
        elsif n = 1 then
            perform from trunkline."queue_emails" q where (q.due_at, q.id + 0) >= (due, 0) and q.due_at <= until
            order by q.due_at, q.id + 0 limit 1 for update skip locked;
            if not found then
                return; -- nothing is due: not even a row that has to be split
            end if;
        end if;
    end if;
    marked := rows < 0;
    rows := abs(rows);
    while n > 0 loop
        if cut then
            at := trunkline."do_gather_emails"(n, rows, true, 0, due, next_id, to_bury);
        else
            begin
                at := trunkline."do_gather_emails"(n, rows, false, 0, due, next_id, to_bury);
            exception when sqlstate 'TL000' then
                rows := sqlerrm::int;
                stops := true;
                continue when rows > 0;
                if false and used > 0 then
                    perform trunkline."do_used_emails"(used); -- counts the rows that earlier passes have taken
                end if;
                return query select null::bigint, 0, 0, null::timestamptz, null::pg_catalog.jsonb[], null::jsonb[], 0, null::text, null::jsonb;
                return;
            end;
        end if;
        to_bury := at.to_bury;
        exit when at.got = 0;
        if cardinality(at.tids) = 1 then
            -- The usual case if messages are few: a single row needs no order.
            return query
                delete from trunkline."queue_emails" q where q.ctid = at.tids[1]
                returning q.id, q.attempt, q.size, q.enqueued_at, q.payload, q.metadata, q.released, q.error,
                          case when keep then trunkline."do_kept_emails"(q.*) end;
        else
            return query
                with gone as (
                    delete from trunkline."queue_emails" q using unnest(at.tids) with ordinality d(tid, nr)
                    where q.ctid = d.tid
                    returning d.nr, q.id, q.attempt, q.size, q.enqueued_at, q.payload, q.metadata, q.released, q.error,
                              case when keep then trunkline."do_kept_emails"(q.*) end as own)
                select g.id, g.attempt, g.size, g.enqueued_at, g.payload, g.metadata, g.released, g.error, g.own from gone g order by g.nr;
        end if;
        used := used + at.got;
        exit when not at.more;
        n := n - at.got;
        -- After a row that could not be returned whole, only as many rows are locked as could be
        -- used. Otherwise each row that has to be split would require reading all of them.
        stops := stops or cardinality(at.tids) < rows;
        rows := least(n, 1 + n::bigint * cardinality(at.tids) / at.got, case when stops then 4 + 2 * cardinality(at.tids) else n end);
        due := at.due;
        next_id := at.id;
    end loop;
    if false and used > 0 then
        perform trunkline."do_used_emails"(used);
    end if;
    if marked and to_bury <= 0 then
        return query select null::bigint, 0, 0, null::timestamptz, null::pg_catalog.jsonb[], null::jsonb[], 0, null::text, null::jsonb;
    end if;
end ;

function do_take_orders(n integer, floor timestamp with time zone DEFAULT '-infinity'::timestamp with time zone, rows integer DEFAULT 1, cut boolean DEFAULT true, keep boolean DEFAULT false) returns TABLE(id bigint, attempt integer, size integer, enqueued_at timestamp with time zone, payload payload_orders[], metadata jsonb[], released integer, error text, own jsonb) language plpgsql volatile set search_path=pg_catalog, pg_temp as 
begin
    perform trunkline.refuse_keys('orders');
end ;

function do_take_tasks(n integer, floor timestamp with time zone[] DEFAULT array_fill('-infinity'::timestamp with time zone, ARRAY[4]), rows integer DEFAULT 1, cut boolean DEFAULT true, keep boolean DEFAULT false) returns TABLE(id bigint, attempt integer, size integer, enqueued_at timestamp with time zone, payload text[], metadata jsonb[], released integer, error text, own jsonb) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    at record;
    turn record;
    dues timestamptz[] := floor;
    next_ids bigint[] := array_fill(0::bigint, array[4]);
    by_lane bool := n = 1 or not cut;
    marked constant bool := rows < 0;
    to_bury int;
    stops bool;
    used int := 0;
begin
    if false then
        n := trunkline."do_allowed_tasks"(n, true);
    end if;
    rows := abs(rows);
    while n > 0 and not false loop
        if not by_lane then
            at := trunkline."do_heads_tasks"(n, rows, false, floor);
            by_lane := at.more;
        else
            turn := trunkline."do_turn_tasks"(dues, next_ids);
            exit when turn.lane is null;
            if cut then
                at := trunkline."do_gather_tasks"(n, rows, true, 0, dues[turn.lane + 1], next_ids[turn.lane + 1], turn.lane, turn.bound, to_bury);
            else
                begin
                    at := trunkline."do_gather_tasks"(n, rows, false, 0, dues[turn.lane + 1], next_ids[turn.lane + 1], turn.lane, turn.bound, to_bury);
                exception when sqlstate 'TL000' then
                    rows := sqlerrm::int;
                    stops := true;
                    continue when rows > 0;
                    if false and used > 0 then
                        perform trunkline."do_used_tasks"(used); -- counts the rows that earlier passes have taken
                    end if;
                    return query select null::bigint, 0, 0, null::timestamptz, null::pg_catalog.text[], null::jsonb[], 0, null::text, null::jsonb;
                    return;
                end;
            end if;
            to_bury := at.to_bury;
            -- If `more` is false, no free row is left below the bound: other sessions hold the other
            -- rows of the lane, or these rows are due later.
            dues[turn.lane + 1] := case when at.more then at.due else turn.bound end;
            next_ids[turn.lane + 1] := case when at.more then at.id else 9223372036854775807 end;
        end if;
        continue when at.got = 0 and by_lane and (to_bury <= 0) is not true;
        exit when at.got = 0;
        if cardinality(at.tids) = 1 then
            -- The usual case if messages are few: a single row needs no order.
            return query
                delete from trunkline."queue_tasks" q where q.ctid = at.tids[1]
                returning q.id, q.attempt, q.size, q.enqueued_at, q.payload, q.metadata, q.released, q.error,
                          case when keep then trunkline."do_kept_tasks"(q.*) end;
        else
            return query
                with gone as (
                    delete from trunkline."queue_tasks" q using unnest(at.tids) with ordinality d(tid, nr)
                    where q.ctid = d.tid
                    returning d.nr, q.id, q.attempt, q.size, q.enqueued_at, q.payload, q.metadata, q.released, q.error,
                              case when keep then trunkline."do_kept_tasks"(q.*) end as own)
                select g.id, g.attempt, g.size, g.enqueued_at, g.payload, g.metadata, g.released, g.error, g.own from gone g order by g.nr;
        end if;
        used := used + at.got;
        exit when not at.more and not by_lane;
        n := n - at.got;
        -- After a row that could not be returned whole, only as many rows are locked as could be
        -- used. Otherwise each row that has to be split would require reading all of them.
        stops := stops or at.more and cardinality(at.tids) < rows;
        rows := least(n, 1 + n::bigint * cardinality(at.tids) / at.got, case when stops then 4 + 2 * cardinality(at.tids) else n end);
    end loop;
    if false and used > 0 then
        perform trunkline."do_used_tasks"(used);
    end if;
    if marked and to_bury <= 0 then
        return query select null::bigint, 0, 0, null::timestamptz, null::pg_catalog.text[], null::jsonb[], 0, null::text, null::jsonb;
    end if;
end ;

function do_turn_tasks(dues timestamp with time zone[], ids bigint[], OUT lane integer, OUT bound timestamp with time zone) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
    head_start constant interval := interval '00:01:00';
    head record;
    rank timestamptz;
    second timestamptz;
begin
    for head in
        select l.nr, greatest(o.due_at, '0001-01-01 00:00:00+00') - l.nr * head_start as rank
        from generate_series(4 - 1, 0, -1) l(nr),
             lateral (select q.due_at from trunkline."queue_tasks" q
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

function do_unique_tasks(payloads text[], dues double precision[], metadata jsonb[], lanes integer[], keys text[], terms double precision[], replaces boolean[], alone boolean DEFAULT false) returns TABLE(id bigint, outcome integer) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    since timestamptz;
    sizes bigint[];
    stays bool[];
    holders bigint[];
    firsts int[];
    lasts int[];
    wanted int;
    claimed int;
    orphans bigint[];
    expired bool;
    ahead bool;
    line record;
    nrs int[];
    part pg_catalog.text[];
    beside jsonb[];
    row_id bigint;
    ids bigint[];
    done bool[];
begin
    -- A producer has no such right. Without this check, the call would fail only once a key is taken.
    if true = any (replaces) and not has_any_column_privilege('trunkline."queue_tasks"'::regclass, 'update') then
        raise exception 'permission denied to replace messages of queue %', quote_literal('tasks') using errcode = 'insufficient_privilege',
            detail = 'To replace waiting messages, a role also needs the rights of a consumer.';
    end if;
    payloads := payloads[:];
    if array_ndims(keys) > 1 or array_lower(keys, 1) <> 1 then
        keys := array(select u.key from unnest(keys) with ordinality u(key, nr) order by u.nr);
    end if;
    if array_ndims(metadata) > 1 then
        metadata := array(select u.metadata from unnest(metadata) with ordinality u(metadata, nr) order by u.nr);
    end if;
    metadata := metadata[:];
    sizes := array(
        select trunkline.payload_bytes('tasks', pg_column_size(m.payload)) + coalesce(pg_column_size(m.metadata), 0)
        from (select generate_series(1, cardinality(payloads)) as nr, unnest(payloads) as payload, unnest(metadata) as metadata) m order by m.nr);
    loop
        begin
            since := clock_timestamp();
            done := null;
            -- If a key is free, the first message with the key stays. It gets the contents of the
            -- last message that is to replace it. A claim whose message no longer exists, as after
            -- a restore, counts as free.
            select array_agg(p.holder is null and p.nr = p.first order by p.nr), array_agg(p.holder order by p.nr),
                   array_agg(p.first order by p.nr), array_agg(p.last order by p.nr), array_agg(p.orphan order by p.nr),
                   count(*) filter (where p.key is not null and p.holder is null and p.nr = p.first), coalesce(bool_or(p.expired), false), coalesce(bool_or(p.ahead), false)
            into stays, holders, firsts, lasts, orphans, wanted, expired, ahead
            from (select m.nr, m.key, u.is_free as expired, u.claimed_at > since as ahead, case when not u.is_free then u.id end as holder,
                         case when u.is_free then u.id end as orphan,
                         case when m.key is null then m.nr else min(m.nr) over same end as first,
                         case when m.key is not null then max(m.nr) filter (where m.replaces) over same end as last
                  from unnest(keys, replaces) with ordinality m(key, replaces, nr)
                  left join lateral (
                      select c.id, c.claimed_at, coalesce(c.until <= since, not exists (
                          select from trunkline."queue_tasks" q where q.id <= c.id and q.id >= c.id / 1024 * 1024 and q.id + q.size > c.id)) as is_free
                      from trunkline."unique_tasks" c where c.key = m.key) u on true
                  window same as (partition by m.key)) p;
            if expired and current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
                perform trunkline.check_snapshot('tasks'); -- otherwise the message of a claim could be invisible
            end if;
            if ahead then
                -- The clock was ahead when the keys were claimed. The keys are kept for as long as
                -- the callers asked, from now on.
                update trunkline."unique_tasks" u set until = since + (u.until - u.claimed_at), claimed_at = since
                where u.key = any (array(select a.key from trunkline."unique_tasks" a where a.key = any (keys) and a.claimed_at > since for update skip locked));
            end if;
            ids := holders;
            for line in
                select array_agg(p.nr order by p.nr) as nrs, p.due, p.lane
                from (select m.*, (sum(m.bytes) over w - m.bytes)::bigint / 65536 as page, row_number() over w as at
                      from (select s.nr, dues[coalesce(s.last, s.nr)] as due, lanes[s.nr] as lane, sizes[coalesce(s.last, s.nr)] as bytes
                            from unnest(stays, lasts) with ordinality s(stays, last, nr) where s.stays) m
                      window w as (partition by m.due, m.lane order by m.nr)) p
                group by p.due, p.lane, p.page, p.bytes > 65536, (p.at - 1) / 1024 order by min(p.nr)
            loop
                nrs := line.nrs;
                if cardinality(nrs) = cardinality(payloads) then
                    part := payloads;
                    beside := metadata;
                else
                    part := '{}';
                    beside := '{}';
                    for i in 1..cardinality(nrs) loop
                        part[i] := payloads[coalesce(lasts[nrs[i]], nrs[i])];
                        beside[i] := metadata[coalesce(lasts[nrs[i]], nrs[i])];
                    end loop;
                end if;
                if num_nonnulls(variadic beside) = 0 then
                    beside := null;
                end if;
                row_id := trunkline."do_row_tasks"(line.due, cardinality(nrs), part, beside, line.lane);
                for i in 1..cardinality(nrs) loop
                    ids[nrs[i]] := row_id + i - 1;
                end loop;
            end loop;
            claimed := 0;
            if not expired then
                insert into trunkline."unique_tasks" (key, id, until, claimed_at)
                select k.key, k.id, since + k.term * interval '1 second', case when k.term is not null then since end
                from unnest(keys, ids, terms, stays) k(key, id, term, stays)
                where k.stays and k.key is not null order by k.key collate "C"
                on conflict on constraint "uniquekey_tasks" do nothing;
                get diagnostics claimed = row_count;
            else
                -- If some keys have expired, keys are claimed one by one: a call that fails to get
                -- a key must not lock it while it waits for the next key.
                for line in
                    select k.key, k.id, since + k.term * interval '1 second' as until, k.orphan
                    from unnest(keys, ids, terms, stays, orphans) k(key, id, term, stays, orphan)
                    where k.stays and k.key is not null order by k.key collate "C"
                loop
                    insert into trunkline."unique_tasks" as u (key, id, until, claimed_at)
                    values (line.key, line.id, line.until, case when line.until is not null then since end)
                    on conflict on constraint "uniquekey_tasks" do update
                    set id = excluded.id, until = excluded.until, claimed_at = excluded.claimed_at
                    where u.until <= since or u.until is null and u.id = line.orphan;
                    exit when not found;
                    claimed := claimed + 1;
                end loop;
            end if;
            if claimed < wanted then
                raise exception sqlstate 'TL000';
            end if;
            if exists (select from unnest(holders, lasts) h(holder, last) where h.holder is not null and h.last is not null) then
                done := trunkline."do_replace_tasks"(payloads, dues, metadata, keys, holders, lasts);
            end if;
            exit;
        exception when sqlstate 'TL000' then
            null; -- another call claimed one of the keys, or ended the message that was to be replaced
        end;
    end loop;
    return query
        select ids[o.first],
               case when o.stays then 0 when not o.replaces then 1 when o.holder is null or done[o.last] then 2 else 1 end
        from unnest(stays, firsts, holders, lasts, replaces) with ordinality o(stays, first, holder, last, replaces, nr) order by o.nr;
    if not alone then
        perform pg_notify('trunkline.tasks', '') where cardinality(payloads) > 0 and trunkline.announced('trunkline.tasks');
    elsif exists (select from unnest(terms) t where t is not null) then
        perform trunkline."do_forget_tasks"(1 + cardinality(terms) / 32);
    end if;
end ;

function do_used_orders(n integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan row_security=on as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    if 50 is not null and n > 0 then
        update trunkline.bucket b
        set tokens = trunkline.tokens(b.tokens, b.filled_at, 50, 50, clock) - n, filled_at = clock
        where b.queue = 'orders';
    end if;
end ;

function do_want_orders(n integer, share integer, holder bigint, until timestamp with time zone) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
    most record;
begin
    select o.holder, count(*) as lanes, count(*) filter (where o.wanted_until > clock) as wanted into most from trunkline."lane_orders" o
    where o.held_until > clock and o.holder <> holder group by o.holder order by 2 desc limit 1;
    n := least(n, most.lanes - most.wanted - share);
    if n > 0 then
        update trunkline."lane_orders" h set wanted_until = until
        from (select w.lane from trunkline."lane_orders" w
              where w.holder = most.holder and w.held_until > clock and w.wanted_until <= clock
              order by w.served_at limit n for update skip locked) w
        where h.lane = w.lane;
    end if;
end ;

function do_wrong_emails() returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    return exists (
        select from (
            select q.enqueued_at, q.due_at, q.attempt > 0 and q.error is null as is_leased from trunkline."queue_emails" q
            where q.due_at > clock + interval '00:00:30' + interval '1 minute' order by q.due_at desc, q.id + 0 desc limit 8) m
        where m.enqueued_at > clock_timestamp() + interval '1 s' or m.is_leased and m.due_at > clock + interval '8808 hours');
end ;

function do_wrong_orders() returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    return exists (
        select from (
            select q.enqueued_at, q.due_at, q.attempt > 0 and q.error is null as is_leased from trunkline."queue_orders" q
            where q.due_at > clock + interval '00:00:30' + interval '1 minute' order by q.due_at desc, q.id + 0 desc limit 8) m
        where m.enqueued_at > clock_timestamp() + interval '1 s' or m.is_leased and m.due_at > clock + interval '8808 hours' * 1.5);
end ;

function do_wrong_tasks() returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off plan_cache_mode=force_generic_plan as 
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
begin
    return exists (
        select from generate_series(0, 4 - 1) l(lane), lateral (
            select q.enqueued_at, q.due_at, q.attempt > 0 and q.error is null as is_leased from trunkline."queue_tasks" q
            where q.lane = l.lane and q.due_at > clock + interval '00:00:30' + interval '1 minute' order by q.due_at desc, q.id + 0 desc limit 8) m
        where m.enqueued_at > clock_timestamp() + interval '1 s' or m.is_leased and m.due_at > clock + interval '8808 hours');
end ;

function drop_queue(queue text, cascade boolean DEFAULT false) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp lock_timeout=10s client_min_messages=warning;

function drop_schedule(name text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function due_from(seconds double precision) returns timestamp with time zone language sql volatile;

function due_of(delay interval) returns double precision language plpgsql volatile set search_path=pg_catalog, pg_temp;

function enqueue(queue text, payload anyelement, delay interval DEFAULT '00:00:00'::interval, metadata jsonb DEFAULT NULL::jsonb, priority integer DEFAULT 0, unique_key text DEFAULT NULL::text, unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, key text DEFAULT NULL::text) returns bigint language plpgsql volatile;

function enqueue(queue text, payload text, delay interval DEFAULT '00:00:00'::interval, metadata jsonb DEFAULT NULL::jsonb, priority integer DEFAULT 0, unique_key text DEFAULT NULL::text, unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, key text DEFAULT NULL::text) returns bigint language plpgsql volatile;

function enqueue_many(queue text, payloads anyarray, delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], priority integer DEFAULT 0, unique_keys text[] DEFAULT NULL::text[], unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, keys text[] DEFAULT NULL::text[]) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function enqueue_many(queue text, payloads character varying[], delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], priority integer DEFAULT 0, unique_keys text[] DEFAULT NULL::text[], unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, keys text[] DEFAULT NULL::text[]) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function enqueue_many(queue text, payloads text, delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], priority integer DEFAULT 0, unique_keys text[] DEFAULT NULL::text[], unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, keys text[] DEFAULT NULL::text[]) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function enqueue_many(queue text, payloads text[], delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], priority integer DEFAULT 0, unique_keys text[] DEFAULT NULL::text[], unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, keys text[] DEFAULT NULL::text[]) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function enqueue_many_with_columns(queue text, payloads text[], columns jsonb, delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], priority integer DEFAULT 0, keys text[] DEFAULT NULL::text[]) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function enqueue_one(queue text, payload anyelement, delay interval, metadata jsonb, priority integer, unique_key text, unique_for interval, replace boolean, key text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function enqueue_row(queue text, payloads anyarray, columns jsonb, due double precision, metadata jsonb[], lane integer, keys text[]) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp DateStyle=ISO IntervalStyle=postgres TimeZone=UTC lc_monetary=C;

function enqueue_rows(queue text, payloads anyarray, columns jsonb, due double precision, metadata jsonb[], priority integer, keys text[]) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function enqueue_unique(queue text, payload anyelement, unique_key text, unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, delay interval DEFAULT '00:00:00'::interval, metadata jsonb DEFAULT NULL::jsonb, priority integer DEFAULT 0, OUT id bigint, OUT outcome text) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp;

function enqueue_unique(queue text, payload text, unique_key text, unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, delay interval DEFAULT '00:00:00'::interval, metadata jsonb DEFAULT NULL::jsonb, priority integer DEFAULT 0, OUT id bigint, OUT outcome text) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp;

function enqueue_unique_many(queue text, payloads anyarray, unique_keys text[], unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], priority integer DEFAULT 0) returns TABLE(id bigint, outcome text) language plpgsql volatile set search_path=pg_catalog, pg_temp;

function enqueue_unique_many(queue text, payloads character varying[], unique_keys text[], unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], priority integer DEFAULT 0) returns TABLE(id bigint, outcome text) language plpgsql volatile set search_path=pg_catalog, pg_temp;

function enqueue_unique_many(queue text, payloads text, unique_keys text[], unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], priority integer DEFAULT 0) returns TABLE(id bigint, outcome text) language plpgsql volatile set search_path=pg_catalog, pg_temp;

function enqueue_unique_many(queue text, payloads text[], unique_keys text[], unique_for interval DEFAULT NULL::interval, replace boolean DEFAULT false, delay interval DEFAULT '00:00:00'::interval, metadata jsonb[] DEFAULT NULL::jsonb[], priority integer DEFAULT 0) returns TABLE(id bigint, outcome text) language plpgsql volatile set search_path=pg_catalog, pg_temp;

function enqueue_with_columns(queue text, payload text, columns jsonb, delay interval DEFAULT '00:00:00'::interval, metadata jsonb DEFAULT NULL::jsonb, priority integer DEFAULT 0, key text DEFAULT NULL::text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function epoch_of(at timestamp with time zone) returns bigint language plpgsql immutable set search_path=pg_catalog, pg_temp;

function extend(queue text, id bigint, attempt integer, lease interval) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function extend_many(queue text, ids bigint[], attempts integer[], lease interval) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function fail_schedule(name text, tick timestamp with time zone, next timestamp with time zone, problem text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off;

function fill(template text, queue text, type text DEFAULT NULL::text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp standard_conforming_strings=on extra_float_digits=1;

function find(queue text, id bigint) returns TABLE(state text, attempt integer, due_at timestamp with time zone, ended_at timestamp with time zone, enqueued_at timestamp with time zone, error text, payload text, metadata jsonb, priority integer, key text) language plpgsql volatile set search_path=pg_catalog, pg_temp;

function fire_schedule(name text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function floor(queue text, keep boolean DEFAULT true) returns timestamp with time zone language plpgsql volatile;

function floors(priorities integer, parameter text) returns text language sql stable;

function forget_relays() returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function forget_workers() returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function found_schedule(name text, was_found boolean) returns void language plpgsql stable set search_path=pg_catalog, pg_temp;

function gone(queue text, ids bigint[], attempts integer[]) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off;

function grant_rights(role regrole, kind text, queue text DEFAULT NULL::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function header_of(body text) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp standard_conforming_strings=on;

function hold_retries(queue text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function in_lanes(queue text, parameter text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp;

function install_functions(queue text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp standard_conforming_strings=on check_function_bodies=off;

function install_queue(queue text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp standard_conforming_strings=on;

function is_array(type regtype) returns boolean language plpgsql stable set search_path=pg_catalog, pg_temp;

function is_held() returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp;

function is_large(queue text) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp;

function keep_floor(queue text, reached timestamp with time zone) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off row_security=on;

function keep_letter() returns trigger language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off;

function keep_place() returns trigger language plpgsql volatile set search_path=pg_catalog, pg_temp;

function kept_floor(queue text) returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp row_security=on;

function lane_of(key text, lanes integer) returns smallint language plpgsql immutable set search_path=pg_catalog, pg_temp;

function lease(queue text, n integer DEFAULT 1, lease interval DEFAULT NULL::interval, wait interval DEFAULT '00:00:00'::interval) returns TABLE(id bigint, attempt integer, enqueued_at timestamp with time zone, due_at timestamp with time zone, payload text, metadata jsonb) language plpgsql volatile set search_path=pg_catalog, pg_temp;

function lease_partition(queue text, n integer DEFAULT 100, lease interval DEFAULT NULL::interval) returns TABLE(holder bigint, id bigint, attempt integer, key text, enqueued_at timestamp with time zone, due_at timestamp with time zone, payload text, metadata jsonb) language plpgsql volatile set search_path=pg_catalog, pg_temp;

function letters_after(queue text, after bigint, n bigint) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off;

function limit_queue(queue text, max_leased integer DEFAULT NULL::integer, per_second double precision DEFAULT NULL::double precision, burst integer DEFAULT NULL::integer, key_per_second double precision DEFAULT NULL::double precision, key_burst integer DEFAULT NULL::integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp lock_timeout=3s client_min_messages=warning;

function listen(queue text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function lock_partitions(queue text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp lock_timeout=10s;

function lock_queue(queue text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function look_floor(queue text, keep boolean) returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off;

function messages(queue text, first_id bigint DEFAULT NULL::bigint, last_id bigint DEFAULT NULL::bigint, due_from timestamp with time zone DEFAULT NULL::timestamp with time zone, due_before timestamp with time zone DEFAULT NULL::timestamp with time zone) returns TABLE(id bigint, enqueued_at timestamp with time zone, due_at timestamp with time zone, attempt integer, error text, payload text, metadata jsonb, priority integer, key text) language plpgsql volatile set search_path=pg_catalog, pg_temp;

function messages_within(queue text, first_id bigint, last_id bigint, due_from timestamp with time zone, due_before timestamp with time zone) returns TABLE(id bigint, enqueued_at timestamp with time zone, due_at timestamp with time zone, attempt integer, error text, payload text, metadata jsonb, priority integer, key text) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off;

function missing(ids bigint[], sizes integer[], found_nrs bigint[], found_ids bigint[], found_sizes integer[], OUT nrs bigint[], OUT missing_ids bigint[], OUT missing_sizes integer[]) returns record language plpgsql immutable set search_path=pg_catalog, pg_temp jit=off;

function more(queue text, holder bigint, n integer DEFAULT 100, lease interval DEFAULT NULL::interval) returns TABLE(id bigint, attempt integer, key text, enqueued_at timestamp with time zone, due_at timestamp with time zone, payload text, metadata jsonb) language plpgsql volatile set search_path=pg_catalog, pg_temp;

function more_lanes(queue text, lanes integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function not_stored(queue text, wanted bigint, stored bigint) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function own(statement text, r anyelement) returns jsonb language plpgsql stable set search_path=pg_catalog, pg_temp DateStyle=ISO IntervalStyle=postgres extra_float_digits=1 TimeZone=UTC lc_monetary=C;

function own_columns(queue text, ids bigint[]) returns TABLE(id bigint, columns jsonb) language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off enable_material=off jit=off;

function page(of anyelement, after bigint, n bigint) returns SETOF anyelement language plpgsql stable set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off;

function page_by_due(queue text, of anyelement, after_due timestamp with time zone, after_id bigint, n bigint) returns SETOF anyelement language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off;

function parts_of(queue text) returns text[] language plpgsql stable set search_path=pg_catalog, pg_temp;

function pause_queue(queue text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function pause_schedule(name text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function payload_as(payload anyelement, typed anycompatiblearray) returns anycompatiblearray language plpgsql stable set search_path=pg_catalog, pg_temp;

function payload_bytes(queue text, bytes integer) returns bigint language plpgsql immutable set search_path=pg_catalog, pg_temp;

function payload_type(queue text) returns regtype language plpgsql stable set search_path=pg_catalog, pg_temp;

function payloads_as(payloads anyarray, typed anycompatiblearray) returns anycompatiblearray language plpgsql stable set search_path=pg_catalog, pg_temp;

function payloads_of(texts text[], typed anyarray) returns anyarray language plpgsql stable set search_path=pg_catalog, pg_temp DateStyle=ISO, YMD IntervalStyle=postgres TimeZone=UTC extra_float_digits=3 bytea_output=hex lc_monetary=C;

function place_schedules(tids tid[], nexts timestamp with time zone[], lasts timestamp with time zone[], problems text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_hashjoin=off enable_mergejoin=off jit=off;

function prune(queue text, age interval) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off;

function prune_keys(queue text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function purge(queue text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off;

function raise_in_use(queue text, period text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function read_as(written text, sample anyelement) returns anyelement language plpgsql stable set search_path=pg_catalog, pg_temp DateStyle=ISO IntervalStyle=postgres TimeZone=UTC extra_float_digits=1 bytea_output=hex lc_monetary=C xmloption=content;

function rebuild(queue text) returns TABLE(what text, changed bigint) language plpgsql volatile set search_path=pg_catalog, pg_temp lock_timeout=10s client_min_messages=warning;

function refuse_cut(type regtype) returns void language plpgsql stable set search_path=pg_catalog, pg_temp;

function refuse_keys(queue text) returns void language plpgsql stable set search_path=pg_catalog, pg_temp;

function refuse_older() returns trigger language plpgsql volatile set search_path=pg_catalog, pg_temp;

function refuse_row() returns trigger language plpgsql volatile;

function release(queue text, id bigint, attempt integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function release_many(queue text, ids bigint[], attempts integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function release_partition(queue text, holder bigint) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp;

function repair_sequence(queue text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off;

function repair_times(queue text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp row_security=on;

function replay(queue text, ids bigint[]) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function replay_all(queue text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function replay_some(queue text, ids bigint[], n bigint) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off enable_hashjoin=off enable_mergejoin=off jit=off;

function reschedule(queue text, ids bigint[], due timestamp with time zone) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function resume_queue(queue text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function resume_schedule(name text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function retry(queue text, id bigint, attempt integer, delay interval DEFAULT '00:00:00'::interval, error text DEFAULT ''::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function retry_many(queue text, ids bigint[], attempts integer[], delay interval DEFAULT '00:00:00'::interval, error text DEFAULT ''::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function revoke_rights(role regrole, queue text DEFAULT NULL::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function rewrite(rows anyarray, main regclass, at_least bigint, max_pause interval, OUT freed bigint, OUT refused text) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp lock_timeout=20ms row_security=off jit=off max_parallel_workers_per_gather=0 client_min_messages=warning;

function right_schedules() returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off;

function schedules_due_in(since timestamp with time zone, OUT due_in double precision, OUT clock timestamp with time zone) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off;

function send_direct(queue text, payload anyelement, metadata jsonb DEFAULT NULL::jsonb) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function send_direct(queue text, payload text, metadata jsonb DEFAULT NULL::jsonb) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function send_direct_one(queue text, payload anyelement, metadata jsonb) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function send_element(queue text, element bytea, metadata jsonb DEFAULT NULL::jsonb) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off row_security=on;

function set_paused(queue text, paused boolean) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function set_schedule(name text, queue text, expression text, payload text, zone text DEFAULT 'UTC'::text, metadata jsonb DEFAULT NULL::jsonb, missed text DEFAULT 'once'::text, priority integer DEFAULT 0, key text DEFAULT NULL::text) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp;

function set_vacuum(queue text) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp lock_timeout=3s;

function settle(verb text, queue text, ids bigint[], attempts integer[], span interval DEFAULT NULL::interval, reason text DEFAULT NULL::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp jit=off;

function shift(queue text, passed interval) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp row_security=on;

function shortens(type regtype) returns boolean language plpgsql stable set search_path=pg_catalog, pg_temp;

function sort_lanes(queue text, lanes integer, first integer) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp;

function stats(queue text) returns TABLE(due bigint, delayed bigint, leased bigint, to_retry bigint, dead bigint, rows bigint, oldest_due interval) language plpgsql volatile set search_path=pg_catalog, pg_temp;

function take(queue text, n integer DEFAULT 1, wait interval DEFAULT '00:00:00'::interval) returns TABLE(id bigint, attempt integer, enqueued_at timestamp with time zone, payload text, metadata jsonb) language plpgsql volatile set search_path=pg_catalog, pg_temp;

function tick(tids tid[], ticks timestamp with time zone[]) returns SETOF bigint language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_hashjoin=off enable_mergejoin=off jit=off lock_timeout=1s;

function time_of(epoch bigint) returns timestamp with time zone language plpgsql immutable set search_path=pg_catalog, pg_temp;

function tokens(tokens double precision, filled_at timestamp with time zone, burst double precision, per_second double precision, clock timestamp with time zone) returns double precision language sql immutable;

function unlisten(queue text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp client_min_messages=error;

function wait_for_rewrite(queue text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp;

function wait_no_more(consumer text) returns SETOF text language plpgsql volatile set search_path=pg_catalog, pg_temp enable_seqscan=off enable_bitmapscan=off jit=off;

function written(payload anyelement) returns text language plpgsql stable set search_path=pg_catalog, pg_temp DateStyle=ISO IntervalStyle=postgres TimeZone=UTC extra_float_digits=1 bytea_output=hex lc_monetary=C xmloption=content;
