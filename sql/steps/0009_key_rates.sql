-- A queue with keys may have a rate for each of them: see limit_queue. What a lane's holder has to know of the one before it: until when
-- that one may have begun with messages (starts_until), and so as of when every key's bucket counts as empty (empty_at).
alter table trunkline.queue
    add column key_per_second float8 constraint queue_key_per_second check (key_per_second > 0 and key_per_second < 'infinity'),
    add column key_burst float8 constraint queue_key_burst check (key_burst >= 1 and key_burst < 'infinity');
-- Messages of a schedule have a key, in a queue with keys.
alter table trunkline.schedule add column key text constraint schedule_key check (key <> '' and octet_length(key) <= 1024);
-- They have parameters more.
drop function if exists trunkline.limit_queue(text, int, float8, int);
drop function if exists trunkline.set_schedule(text, text, text, text, text, jsonb, text, int);
-- These tell a message's key, too, so they return a column more.
drop function if exists trunkline.find(text, bigint);
drop function if exists trunkline.messages(text, bigint, bigint, timestamptz, timestamptz);
drop function if exists trunkline.dead_letters(text, bigint, int);
do $$
declare
    q trunkline.queue;
begin
    for q in select * from trunkline.queue loop
        execute format('drop function if exists trunkline.%I(bigint)', 'do_find_' || q.name);
        execute format('drop function if exists trunkline.%I(bigint, bigint, timestamptz, timestamptz)', 'do_within_' || q.name);
        execute format('drop function if exists trunkline.%I(int, interval, bigint, timestamptz, int)', 'do_lanes_' || q.name);
        execute format('drop function if exists trunkline.%I(text[], interval)', 'do_line_' || q.name);
        if q.lanes > 0 then
            execute format('alter table trunkline.%I add column starts_until timestamptz not null default ''-infinity'', '
                           'add column empty_at timestamptz not null default ''-infinity''', 'lane_' || q.name);
        end if;
    end loop;
end $$;
