-- Creates the tables for messages that move to another shard. No transaction of one server can move
-- them. Messages that were taken out of a queue wait in "moving" until the other shard has them.
-- The other shard records in "moved" what it received, so that a repeated move does not move a
-- message twice. The first drain that moves messages creates the tables, owned by the owner of the
-- schema. Because of the lock, a second drain waits for the first.
set local search_path = pg_catalog, pg_temp;
lock table trunkline.stripe in share update exclusive mode;
create table if not exists trunkline.moving (
    queue       text not null references trunkline.queue (name) on delete cascade,
    target      int not null,
    id          bigint not null,
    enqueued_at timestamptz not null,
    due_at      timestamptz not null,
    attempt     int not null,
    released    int not null,
    error       text,
    size        int not null,
    payload     text not null,
    metadata    text,
    own         jsonb,
    place       timestamptz,
    primary key (queue, target, id)
);
create table if not exists trunkline.moved (
    source   int not null,
    queue    text not null references trunkline.queue (name) on delete cascade,
    id       bigint not null,
    size     int not null,
    became   bigint not null,
    moved_at timestamptz not null default clock_timestamp(),
    enqueued_at timestamptz,
    primary key (source, queue, id)
);
do $$
declare
    made regclass;
    operator text;
begin
    if not exists (select from pg_attribute a where a.attrelid = 'trunkline.moved'::regclass and a.attname = 'enqueued_at') then
        alter table trunkline.moved add column enqueued_at timestamptz; -- an earlier release made the table
    end if;
    if not exists (select from pg_attribute a where a.attrelid = 'trunkline.moving'::regclass and a.attname = 'place') then
        alter table trunkline.moving add column place timestamptz;
    end if;
    for made in
        select c.oid from pg_class c, pg_class s
        where c.oid in ('trunkline.moving'::regclass, 'trunkline.moved'::regclass) and s.oid = 'trunkline.stripe'::regclass
          and c.relowner <> s.relowner
    loop
        execute format('alter table %s owner to %I', made, (
            select pg_get_userbyid(s.relowner) from pg_class s where s.oid = 'trunkline.stripe'::regclass));
    end loop;
    -- Grants what trunkline.apply_shared_rights grants once the table exists.
    for operator in
        select distinct g.role from trunkline.granted g join pg_roles r on r.rolname = g.role
        where g.kind = 'operator' and g.queue = '' and not has_column_privilege(r.oid, 'trunkline.moving', 'size', 'select')
    loop
        execute format('grant select (queue, target, size) on trunkline.moving to %I', operator);
    end loop;
end $$
