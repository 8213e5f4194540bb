-- A queue with uniqueness has a table of keys: of the messages with one key, one is there. See create_queue.
alter table trunkline.queue add column uniqueness bool not null default false;
-- They have parameters more.
drop function if exists trunkline.create_queue(text, regtype, int, interval, int, int, interval);
drop function if exists trunkline.enqueue(text, anyelement, interval, jsonb, int);
drop function if exists trunkline.enqueue(text, text, interval, jsonb, int);
drop function if exists trunkline.enqueue_many(text, anyarray, interval, jsonb[], int);
drop function if exists trunkline.enqueue_many(text, text[], interval, jsonb[], int);
drop function if exists trunkline.enqueue_many(text, text, interval, jsonb[], int);
