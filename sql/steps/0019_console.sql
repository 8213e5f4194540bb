-- A form of the console acts once: the entry of what it did has its token, and no other entry can have it.
alter table trunkline.audit add column token uuid constraint audit_token unique;

-- What consoles saw of the queues, a row a minute for each, so that all of them show the same, and the next one what the last one saw. The first console that
-- looks in a minute writes it, and removes what is older than a day.
create table trunkline.history (
    minute timestamptz not null,
    queue  text not null,      -- no reference: a queue is dropped without waiting for a console
    depth  bigint not null,    -- messages that wait or are leased
    oldest float8 not null,    -- seconds for which the oldest has been due
    came   float8,             -- messages a second since the minute before; null where that is not known
    went   float8,
    died   float8,
    constraint pk_history primary key (minute, queue)
);
