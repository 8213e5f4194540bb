-- lane: the partition of the row's keys. line: the backlog that the row is in: empty for the
-- partition's backlog, or the key if the key has its own backlog. place: due_at, except that leases
-- and retries do not change it.
alter table trunkline.{queue_}
    add column lane smallint not null constraint lane check (lane between 0 and {key_lanes} - 1),
    add column keys text[] not null,
    add column line text not null default '',
    add column place timestamptz not null;
-- Because of the sum, this index is not used for conditions on the id, as in plain/tables.sql.
create index {due_} on trunkline.{queue_} (due_at, (id + 0));
create index {place_} on trunkline.{queue_} (lane, line, place, (id + 0));
create trigger keep_place before insert on trunkline.{queue_} for each row execute function trunkline.keep_place(0, {key_lanes});
-- holder: a number that no other worker has.
create table trunkline.{lane_} (
    lane         smallint constraint {lanekey_} primary key,
    holder       bigint,
    held_until   timestamptz not null default '-infinity',
    wanted_until timestamptz not null default '-infinity',
    served_at    timestamptz not null default '-infinity',
    floor        timestamptz not null default '-infinity',
    starts_until timestamptz not null default '-infinity',
    empty_at     timestamptz not null default '-infinity'
) with (fillfactor = 10);
-- Each partition also has a row with a negative number. Every lease locks this row, and so do every
-- split of the partition's rows and the release of the partition. Other changes of the partitions
-- never touch it.
insert into trunkline.{lane_} (lane) select generate_series(-{key_lanes}, {key_lanes} - 1);
create table trunkline.{line_} (lane smallint, key text, until timestamptz not null, constraint {linekey_} primary key (lane, key)) with (fillfactor = 50);
