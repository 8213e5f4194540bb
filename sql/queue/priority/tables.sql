-- Each priority is a lane, which is read in the order of the due times.
alter table trunkline.{queue_} add column lane smallint not null default 0 constraint lane check (lane between 0 and {lanes} - 1);
-- Because of the sum, this index is not used for conditions on the id, as in plain/tables.sql.
create index {due_} on trunkline.{queue_} (lane, due_at, (id + 0));
