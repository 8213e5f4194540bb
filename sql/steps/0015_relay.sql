-- Relays to and from brokers: how far each is, and where one from a broker goes on. A relay into a queue moves its position in the transaction that enqueues
-- what it read; so each message arrives once, whatever is killed.
create table trunkline.relay (
    name       text constraint pk_relay primary key,
    queue      text not null constraint fk_relay_queue references trunkline.queue (name) on delete cascade,
    broker     text not null,                                     -- without credentials
    inward     bool not null,                                     -- from the broker into the queue
    position   text,                                              -- inward: behind what is in the queue; in the source's own words
    holder     bigint,                                            -- inward: who moves the position
    held_until timestamptz not null default '-infinity',          -- and until when no other relay may
    confirmed  bigint not null default 0,                         -- messages that arrived: inward ever, outward of this run
    refused    bigint not null default 0,                         -- dead letters
    held       bigint not null default 0,                         -- messages that the broker has refused for now
    lag        bigint,                                            -- messages that are yet to arrive, where that is known
    last_error text,
    failed_at  timestamptz,
    started_at timestamptz not null default clock_timestamp(),
    seen_at    timestamptz not null default clock_timestamp()
);
