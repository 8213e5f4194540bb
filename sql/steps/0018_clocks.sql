-- Stores the clock's time beside each computed time, so that a time that was written while the clock was ahead is recognized: see do_right_ and
-- trunkline.right_schedules. For a lane the column is served_at.
alter table trunkline.schedule
    add column placed_at timestamptz, -- the clock's time when next_at was computed
    add column owed_at timestamptz;   -- the tick that failed; next_at is then the time of the next try
update trunkline.schedule set placed_at = coalesce(last_at, created_at) where placed;
alter table trunkline.floor add column shown timestamptz; -- the time at which the floor was stored
create index schedule_by_placed on trunkline.schedule (placed_at);
do $$
declare
    q trunkline.queue;
begin
    for q in select * from trunkline.queue where uniqueness loop
        -- the clock's time at which "until" was computed; null if there is no "until"
        execute format('alter table trunkline.%I add column claimed_at timestamptz', 'unique_' || q.name);
    end loop;
end $$;
