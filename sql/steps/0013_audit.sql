-- What operators did by the console: written in the transaction of each action, by nothing else.
create table trunkline.audit (
    id       bigint generated always as identity constraint pk_audit primary key,
    at       timestamptz not null default clock_timestamp(),
    who      text not null,                      -- as the console knows them
    role     text not null default session_user, -- as Postgres knows the console
    action   text not null,
    queue    text,                               -- no reference: the entry outlives the queue
    what     text not null,                      -- in words: which messages, until when
    affected bigint not null                     -- messages, or schedules
);
