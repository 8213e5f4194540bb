-- A queue with keys has lanes, and each key its lane. See create_queue.
alter table trunkline.queue
    add column lanes int not null default 0 constraint queue_lanes check (lanes between 0 and 256),
    add column per_key int not null default 1 constraint queue_per_key check (per_key >= 1);
-- They have a parameter more.
drop function if exists trunkline.create_queue(text, regtype, int, interval, int, int, interval, bool);
drop function if exists trunkline.alter_queue(text, int, interval, int, interval);
drop function if exists trunkline.check_settings(text, int, interval, int, int, interval);
drop function if exists trunkline.enqueue(text, anyelement, interval, jsonb, int, text, interval, bool);
drop function if exists trunkline.enqueue(text, text, interval, jsonb, int, text, interval, bool);
drop function if exists trunkline.enqueue_many(text, anyarray, interval, jsonb[], int, text[], interval, bool);
drop function if exists trunkline.enqueue_many(text, text[], interval, jsonb[], int, text[], interval, bool);
drop function if exists trunkline.enqueue_many(text, text, interval, jsonb[], int, text[], interval, bool);
