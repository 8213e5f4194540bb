-- Steps 17 to 21 change these tables. All of their locks are taken here, in one order, so that a migration that must wait for a transaction holds up
-- others only briefly, and then begins again. The tables of queues can be large. An autovacuum of them gives way after a second (deadlock_timeout).
set local lock_timeout = '2s';
do $$
declare
    q trunkline.queue;
begin
    for q in select * from trunkline.queue order by name loop
        execute format('lock table trunkline.%I, trunkline.%I in share row exclusive mode', 'dead_' || q.name, 'archive_' || q.name);
        if q.uniqueness then
            execute format('lock table trunkline.%I in access exclusive mode', 'unique_' || q.name);
        end if;
    end loop;
end $$;
set local lock_timeout = '500ms';
lock table trunkline.schedule, trunkline.floor, trunkline.bucket, trunkline.waiting, trunkline.worker, trunkline.relay, trunkline.audit, trunkline.template,
    trunkline.queue;

-- The time at which a queue was paused.
alter table trunkline.queue add column paused_at timestamptz;
