-- A table without the constraint stays as it is.
alter table trunkline.{queue_} drop constraint if exists drained
