create or replace function trunkline.grant_rights(role regrole, kind text, queue text default null) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Grants a role the minimum rights for its kind, on one queue or, if queue is null, on all queues, including queues
-- that are created later.
--
-- kind: 'producer' enqueues, and cannot read payloads. 'consumer' takes and leases messages, and ends leases; since it
-- may read and delete messages, it can also list, find, cancel, reschedule and purge them, and read dead letters and the
-- archive.
-- 'operator' can do what a consumer can, and also enqueue, replay, discard, prune and shift; an operator of all queues
-- also manages schedules and makes their ticks.
--
-- Only the owner creates, alters, pauses, limits and drops queues. Rights are stored under the role's name: revoke them
-- before you drop the role (also by drop owned), or a role created later under the same name has them. Before you
-- rename a role, revoke its rights, and grant them again to the new name: otherwise the renamed role gets no rights on
-- what is created later, such as the table of a limit.
--
-- Example:
--     select trunkline.grant_rights('pg_monitor', 'operator', 'emails');
declare
    name text := trunkline.check_role(role);
begin
    if kind is null or kind not in ('producer', 'consumer', 'operator') then
        raise exception 'unknown kind of rights: %', coalesce(kind, 'null')
            using errcode = 'invalid_parameter_value', hint = 'Pass producer, consumer or operator.';
    end if;
    lock table trunkline.migration in share row exclusive mode; -- see trunkline.lock_queue
    if queue is not null then
        perform trunkline.check_queue(queue);
    end if;
    insert into trunkline.granted (role, kind, queue) values (name, grant_rights.kind, coalesce(queue, '')) on conflict do nothing;
    perform trunkline.apply_rights(q.name) from trunkline.queue q where q.name = queue or queue is null;
    perform trunkline.apply_shared_rights();
end $$;
