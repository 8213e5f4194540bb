create or replace function trunkline.grant_rights(role regrole, kind text, queue text default null) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Gives a role the least rights for what it does, in one queue or (null) in all, those that are created later among them.
--
-- kind: 'producer' enqueues, and reads no payload. 'consumer' takes and leases, and ends leases; finds, cancels and
-- reschedules. 'operator' does what a consumer does, and reads, replays, discards, purges and prunes; one of all queues also makes
-- schedules and their ticks. Creating, altering and dropping queues is the owner's.
-- Rights are kept by the role's name: revoke them before the role is dropped, or one created later under that name has them.
--
-- Example:
--     select trunkline.grant_rights('pg_monitor', 'operator', 'emails');
declare
    name text := trunkline.check_role(role);
begin
    if kind is null or kind not in ('producer', 'consumer', 'operator') then
        raise exception 'there are no rights of a %', coalesce(kind, 'null')
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
