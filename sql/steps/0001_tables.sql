-- The tables that all queues share. Steps change tables and data, forward only; functions stand in ../functions and
-- ../queue as they are now. `trunkline.` stands for the schema's name wherever it is written.

-- One row a queue. Change it through trunkline.alter_queue, which renews the queue's functions.
create table trunkline.queue (
    name         text constraint pk_queue primary key constraint queue_name check (name ~ '^[a-z][a-z0-9_.-]{0,47}$'),
    max_attempts int not null constraint queue_max_attempts check (max_attempts >= 1),
    lease        interval not null constraint queue_lease check (lease > '0' and lease <= '365 days'),
    max_batch    int not null constraint queue_max_batch check (max_batch between 1 and 1024),
    created_at   timestamptz not null default now()
);

-- What every queue has, with holes for its names: see trunkline.fill. Tables are made once, the rest is renewed.
create table trunkline.template (
    name text constraint pk_template primary key,
    kind text not null constraint template_kind check (kind in ('tables', 'view', 'function')),
    text text not null
);

-- A time before which a queue holds nothing, so that a new process need not walk over what is dead to find that out.
create table trunkline.floor (
    queue   text constraint pk_floor primary key,
    reached timestamptz not null default '-infinity'
);

-- Queues that were dropped, and the first id that no message of theirs had. A queue created again under the same name
-- begins there, so that a late worker's lease cannot name another's message.
create table trunkline.dropped (
    queue   text constraint pk_dropped primary key,
    next_id bigint not null
);

-- Who may do what: renewed with the functions, and applied to queues that are created later.
create table trunkline.granted (
    role  text not null,
    kind  text not null constraint granted_kind check (kind in ('producer', 'consumer', 'operator')),
    queue text not null, -- empty for every queue
    constraint pk_granted primary key (role, kind, queue)
);

-- Consumers that wait for a message inside a notification. Nothing in it outlives a crash.
create unlogged table trunkline.waiting (
    consumer text constraint pk_waiting primary key, queue text not null, alive bigint not null);
create index waiting_by_queue on trunkline.waiting (queue);
