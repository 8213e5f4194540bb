-- A form of the console acts at most once, because its token is unique in the audit.
alter table trunkline.audit add column token uuid constraint audit_token unique;

-- Samples of the queues, one row per minute and queue, which all consoles share. The first console that takes a sample in a minute writes the row, and
-- deletes rows older than a day.
create table trunkline.history (
    minute timestamptz not null,
    queue  text not null,      -- no reference: a queue is dropped without waiting for a console
    depth  bigint not null,    -- messages that wait or are leased
    oldest float8 not null,    -- seconds for which the oldest has been due
    came   float8,             -- messages a second since the minute before; null if unknown
    went   float8,
    died   float8,
    constraint pk_history primary key (minute, queue)
);
