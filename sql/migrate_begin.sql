-- The lock comes first: two processes may find no schema at the same time.
select pg_advisory_xact_lock(hashtextextended('trunkline.migrate', 0));
create schema if not exists trunkline;
create table if not exists trunkline.migration (
    version int primary key, name text not null, applied_at timestamptz not null default now());
