-- Messages of a schedule have a priority, in a queue that has some: the lowest, if none is set.
alter table trunkline.schedule add column priority int not null default 0 constraint schedule_priority check (priority between 0 and 9);
-- It has a parameter more.
drop function if exists trunkline.set_schedule(text, text, text, text, text, jsonb, text);

-- These tell a message's priority, too, so they return a column more.
drop function if exists trunkline.find(text, bigint);
drop function if exists trunkline.messages(text, bigint, bigint, timestamptz, timestamptz);
do $$
declare
    name text;
begin
    for name in select q.name from trunkline.queue q loop
        execute format('drop function if exists trunkline.%I(bigint)', 'do_find_' || name);
        execute format('drop function if exists trunkline.%I(bigint, bigint, timestamptz, timestamptz)', 'do_within_' || name);
    end loop;
end $$;
