-- What the clock showed when a time was written. A clock that is set back makes it lie in the future, and so shows that the time is wrong: see do_right_ and
-- trunkline.right_schedules. Of a lane it is served_at.
alter table trunkline.schedule
    add column placed_at timestamptz, -- of next_at
    add column owed_at timestamptz;   -- the tick that could not be made, where next_at is when that is tried again
update trunkline.schedule set placed_at = coalesce(last_at, created_at) where placed;
alter table trunkline.floor add column shown timestamptz; -- when it was kept
create index schedule_by_placed on trunkline.schedule (placed_at);
do $$
declare
    q trunkline.queue;
begin
    for q in select * from trunkline.queue where uniqueness loop
        execute format('alter table trunkline.%I add column claimed_at timestamptz', 'unique_' || q.name); -- of until, where there is one
    end loop;
end $$;
