-- A queue that is paused hands out nothing; one with limits hands out as much as they allow, over all processes.
alter table trunkline.queue
    add column paused bool not null default false,
    add column max_leased int constraint queue_max_leased check (max_leased >= 1),
    add column per_second float8 constraint queue_per_second check (per_second > 0 and per_second < 'infinity'),
    add column burst float8 constraint queue_burst check (burst >= 1 and burst < 'infinity');
-- What may be dequeued at once, as of that time; of queues with limits, where it is locked by a session that dequeues.
create table trunkline.bucket (
    queue     text constraint pk_bucket primary key constraint fk_bucket_queue references trunkline.queue (name) on delete cascade,
    tokens    float8 not null,
    filled_at timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
