-- A queue with priorities has a lane for each: an ordered line of rows. See create_queue.
alter table trunkline.queue
    add column priorities int not null default 1 constraint queue_priorities check (priorities between 1 and 10),
    add column head_start interval not null default '1 minute' constraint queue_head_start check (head_start > '0' and head_start <= '36500 days');
-- They have a parameter more.
drop function if exists trunkline.create_queue(text, regtype, int, interval, int);
drop function if exists trunkline.alter_queue(text, int, interval, int);
drop function if exists trunkline.check_settings(text, int, interval, int);
drop function if exists trunkline.enqueue(text, anyelement, interval, jsonb);
drop function if exists trunkline.enqueue(text, text, interval, jsonb);
drop function if exists trunkline.enqueue_many(text, anyarray, interval, jsonb[]);
drop function if exists trunkline.enqueue_many(text, text[], interval, jsonb[]);
drop function if exists trunkline.enqueue_many(text, text, interval, jsonb[]);
