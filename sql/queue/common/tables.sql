-- The tables of every queue, created once. If the payload's type is an array, {type} is a domain
-- over it. Vacuum does not pause on these tables: with the server's default pauses it never
-- finishes on a queue at full speed, and the table grows without bound.
create sequence trunkline.{id_} as bigint increment 1024 minvalue 1024;
create table trunkline.{queue_} (
    id          bigint constraint {key_} primary key default nextval('trunkline.{id_}'),
    enqueued_at timestamptz not null default clock_timestamp(),
    due_at      timestamptz not null default trunkline.clock() constraint finite check (isfinite(due_at)),
    attempt     int not null default 0,
    released    int not null default 0,
    size        int not null,
    error       text,
    payload     {type}[] not null,
    metadata    jsonb[]
) with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0,
        toast.autovacuum_vacuum_threshold = 1000, toast.autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_cost_delay = 0);
alter sequence trunkline.{id_} owned by trunkline.{queue_}.id;
-- Without this trigger, a role that may insert could stop the queue for all others. Check
-- constraints would read the payloads again with every lease. Postgres also compiles constraints
-- and the condition of a trigger again with every statement, at 17 us per insert. It compiles the
-- function of a trigger once per session, and a call costs about 3 us.
create trigger refuse_row before insert on trunkline.{queue_} for each row execute function trunkline.refuse_row();
-- attempt is the number of counted attempts; attempt plus released is the number of the last delivery, from which a replay continues. own contains the
-- values of columns that users added, each as Postgres writes it; null if there were none.
create table trunkline.{dead_} (
    id bigint constraint {deadkey_} primary key, enqueued_at timestamptz not null, dead_at timestamptz not null default clock_timestamp(),
    attempt int not null, error text not null, payload {type}, metadata jsonb, released int not null default 0, own jsonb);
create table trunkline.{archive_} (
    id bigint constraint {archivekey_} primary key, enqueued_at timestamptz not null, archived_at timestamptz not null default clock_timestamp(),
    attempt int not null, payload {type} not null, metadata jsonb, own jsonb);
create index {age_} on trunkline.{archive_} (archived_at);
create trigger keep_letter before insert or update of id on trunkline.{dead_} for each row execute function trunkline.keep_letter();
create trigger keep_letter before insert on trunkline.{archive_} for each row when (new.id < 0) execute function trunkline.keep_letter();
