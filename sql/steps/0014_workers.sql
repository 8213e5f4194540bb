-- Reports of the workers that are configured to send them: a row each ten seconds, of the time since the last. A worker that reports
-- removes rows after an hour. A crash of the server empties the table.
create unlogged table trunkline.worker (
    at         timestamptz not null default clock_timestamp(),
    worker     uuid not null,                                            -- drawn at each start
    queue      text not null,                                            -- no reference: no session waits for another
    name       text not null default current_setting('application_name'),
    address    inet default inet_client_addr(),                          -- null by a socket of this machine
    process    bigint not null,
    version    text not null,                                            -- of the library
    started_at timestamptz not null,
    ended      bool not null,                                            -- in order: nothing comes after this row
    seconds    float8 not null,                                          -- since the row before
    handled    bigint not null,                                          -- messages that were handled, those that failed among them
    failed     bigint not null,                                          -- messages that are tried again, or dead
    running    bigint not null,                                          -- handlers at that time
    hands      bigint not null,                                          -- handlers at most
    p50        float8,                                                   -- seconds that a call of the handler took; null where none ended
    p99        float8,
    constraint pk_worker primary key (at, worker)
);
