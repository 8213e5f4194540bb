-- The bounds ensure that the time for which a key is kept can be computed even if a clock was
-- ahead; see do_right_.
create table trunkline.{unique_} (
    key        text collate "C" constraint {uniquekey_} primary key,
    id         bigint not null,
    until      timestamptz,
    claimed_at timestamptz,
    constraint kept check (isfinite(until) and until >= '0001-01-01 00:00:00+00' and claimed_at < '6000-01-01 00:00:00+00')
) with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
create index {uniqueid_} on trunkline.{unique_} (id) where until is null;
