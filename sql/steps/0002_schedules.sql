-- Schedules: a message that is enqueued at every tick of an expression. A row changes with each of its ticks, and rows are few, so
-- there is room for their next versions beside them.
create table trunkline.schedule (
    name       text constraint pk_schedule primary key constraint schedule_name check (name ~ '^[a-z][a-z0-9_.-]{0,47}$'),
    queue      text not null constraint fk_schedule_queue references trunkline.queue (name) on delete cascade,
    expression text not null,
    zone       text not null,
    payload    text not null, -- as Postgres writes it
    metadata   jsonb,
    missed     text not null constraint schedule_missed check (missed in ('skip', 'once', 'each')),
    paused     bool not null default false,
    -- The next tick; where placed is false, only a time at which that is to be computed.
    next_at    timestamptz not null,
    placed     bool not null default false,
    last_at    timestamptz,
    problem    text,
    created_at timestamptz not null default now()
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.1);
create index schedule_by_next on trunkline.schedule (next_at) where not paused;
