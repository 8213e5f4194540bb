-- The tables that all queues share, as 0.1.0 had them: version 15. Steps change tables and data, forward only, and their numbers are the versions of
-- the schema. The current functions are in ../functions and ../queue. `trunkline.` stands for the schema's name.

-- One row per queue. Change it through trunkline.alter_queue, which renews the queue's functions.
create table trunkline.queue (
    name           text constraint pk_queue primary key constraint queue_name check (name ~ '^[a-z][a-z0-9_.-]{0,47}$'),
    max_attempts   int not null constraint queue_max_attempts check (max_attempts >= 1),
    lease          interval not null constraint queue_lease check (lease > '0' and lease <= '365 days'),
    max_batch      int not null constraint queue_max_batch check (max_batch between 1 and 1024),
    created_at     timestamptz not null default now(),
    paused         bool not null default false, -- nothing is dequeued
    -- Limits for all processes together.
    max_leased     int constraint queue_max_leased check (max_leased >= 1),
    per_second     float8 constraint queue_per_second check (per_second > 0 and per_second < 'infinity'),
    burst          float8 constraint queue_burst check (burst >= 1 and burst < 'infinity'),
    -- Priorities: each has its own ordered line of rows. head_start is `aging`, the age that one step of priority is worth.
    priorities     int not null default 1 constraint queue_priorities check (priorities between 1 and 10),
    head_start     interval not null default '1 minute' constraint queue_head_start check (head_start > '0' and head_start <= '36500 days'),
    uniqueness     bool not null default false, -- the queue has a table of unique keys
    -- Keys: lanes is the number of `partitions`, 0 in a queue without keys. The numbers of the partitions start at first_lane.
    lanes          int not null default 0 constraint queue_lanes check (lanes between 0 and 256),
    per_key        int not null default 1 constraint queue_per_key check (per_key >= 1),
    key_per_second float8 constraint queue_key_per_second check (key_per_second > 0 and key_per_second < 'infinity'),
    key_burst      float8 constraint queue_key_burst check (key_burst >= 1 and key_burst < 'infinity'),
    first_lane     smallint not null default 0
);

-- The objects of every queue, with holes for its names: see trunkline.fill. Tables are created once, the other objects are renewed.
create table trunkline.template (
    name text constraint pk_template primary key,
    kind text not null constraint template_kind check (kind in ('tables', 'view', 'function')),
    text text not null
);

-- A time before which a queue has no due rows, so that a new process need not walk over dead rows to find that out.
create table trunkline.floor (
    queue   text constraint pk_floor primary key,
    reached timestamptz not null default '-infinity'
);

-- Queues that were dropped, and the first id that none of their messages had. A queue created later under the same name starts at this id, so that a
-- late worker's lease cannot name another message.
create table trunkline.dropped (
    queue   text constraint pk_dropped primary key,
    next_id bigint not null
);

-- The rights of roles: renewed with the functions, and also applied to queues that are created later.
create table trunkline.granted (
    role  text not null,
    kind  text not null constraint granted_kind check (kind in ('producer', 'consumer', 'operator')),
    queue text not null, -- empty for all queues
    constraint pk_granted primary key (role, kind, queue)
);

-- Consumers that wait for a direct message, which a notification carries. No row survives a crash of the server.
create unlogged table trunkline.waiting (
    consumer text constraint pk_waiting primary key, queue text not null, alive bigint not null);
create index waiting_by_queue on trunkline.waiting (queue);

-- Schedules: a message is enqueued at every tick of an expression. A row changes with each of its ticks, and rows are few. So each page keeps room
-- for new versions of its rows.
create table trunkline.schedule (
    name       text constraint pk_schedule primary key constraint schedule_name check (name ~ '^[a-z][a-z0-9_.-]{0,47}$'),
    queue      text not null constraint fk_schedule_queue references trunkline.queue (name) on delete cascade,
    expression text not null,
    zone       text not null,
    payload    text not null, -- the payload in Postgres' text form
    metadata   jsonb,
    missed     text not null constraint schedule_missed check (missed in ('skip', 'once', 'each')),
    paused     bool not null default false,
    -- The next tick; if placed is false, only a time at which the tick is to be computed.
    next_at    timestamptz not null,
    placed     bool not null default false,
    last_at    timestamptz,
    problem    text,
    created_at timestamptz not null default now(),
    priority   int not null default 0 constraint schedule_priority check (priority between 0 and 9),
    key        text constraint schedule_key check (key <> '' and octet_length(key) <= 1024)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.1);
create index schedule_by_next on trunkline.schedule (next_at) where not paused;

-- The number of messages that a queue with limits may dequeue at once, at a given time. A session that dequeues locks the row.
create table trunkline.bucket (
    queue     text constraint pk_bucket primary key constraint fk_bucket_queue references trunkline.queue (name) on delete cascade,
    tokens    float8 not null,
    filled_at timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- The identity of this database among several that hold queues with the same names: one row. Ids of messages begin with the number in it. So the
-- number must neither change nor depend on where the server is: it stays the same in a backup, a standby and an upgrade. In a database that was
-- copied to be another shard: update trunkline.stripe set number = default;
create table trunkline.stripe (
    number int not null default ('x' || left(gen_random_uuid()::text, 8))::bit(32)::int,
    drains bool not null default false,
    one    bool not null default true constraint pk_stripe primary key constraint stripe_one check (one)
);
insert into trunkline.stripe default values;

-- The actions of operators in the console. A row is written only in the transaction of its action.
create table trunkline.audit (
    id       bigint generated always as identity constraint pk_audit primary key,
    at       timestamptz not null default clock_timestamp(),
    who      text not null,                      -- the user of the console
    role     text not null default session_user, -- the role of the console
    action   text not null,
    queue    text,                               -- no foreign key, so that the entry outlives the queue
    what     text not null,                      -- a description of the action and of its messages
    affected bigint not null                     -- number of messages, or of schedules
);

-- Reports of the workers that are configured to send them: one row every ten seconds, about the time since the previous row. A worker that reports
-- removes rows that are more than an hour old. A crash of the server empties the table.
create unlogged table trunkline.worker (
    at         timestamptz not null default clock_timestamp(),
    worker     uuid not null,                                            -- random, new at each start
    queue      text not null,                                            -- no foreign key, so that no session waits for another
    name       text not null default current_setting('application_name'),
    address    inet default inet_client_addr(),                          -- null if connected through a socket of this machine
    process    bigint not null,
    version    text not null,                                            -- the version of the worker's library
    started_at timestamptz not null,
    ended      bool not null,                                            -- the worker stopped gracefully: this is its last row
    seconds    float8 not null,                                          -- the seconds since the previous row
    handled    bigint not null,                                          -- handled messages, including failed ones
    failed     bigint not null,                                          -- messages that will be retried, or are dead
    running    bigint not null,                                          -- running handlers
    hands      bigint not null,                                          -- maximum number of concurrent handlers
    p50        float8,                                                   -- duration of a handler call, in seconds; null if none ended
    p99        float8,
    constraint pk_worker primary key (at, worker)
);

-- Relays to and from brokers: the progress of each, and where a relay from a broker continues. A relay into a queue moves its position in the
-- transaction that enqueues what it has read. So each message arrives once, no matter which process is killed.
create table trunkline.relay (
    name       text constraint pk_relay primary key,
    queue      text not null constraint fk_relay_queue references trunkline.queue (name) on delete cascade,
    broker     text not null,                                     -- the broker's address, without credentials
    inward     bool not null,                                     -- true for a relay from the broker into the queue
    position   text,                                              -- if inward: the position after the last enqueued message, as the source writes it
    holder     bigint,                                            -- if inward: the number of the relay that moves the position
    held_until timestamptz not null default '-infinity',          -- the time until which no other relay may move the position
    confirmed  bigint not null default 0,                         -- messages that arrived: in total if inward, otherwise in the relay's present run
    refused    bigint not null default 0,                         -- messages that the broker has refused for good, and that became dead letters
    held       bigint not null default 0,                         -- messages that the broker has refused for now
    lag        bigint,                                            -- messages that have yet to arrive, if known
    last_error text,
    failed_at  timestamptz,
    started_at timestamptz not null default clock_timestamp(),
    seen_at    timestamptz not null default clock_timestamp()
);
