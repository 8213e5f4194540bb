create or replace function trunkline.revoke_rights(role regrole, queue text default null) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Revokes all rights that trunkline.grant_rights gave to a role, on one queue or, if queue is null, on all queues. While
-- a role has rights on all queues, those on one queue cannot be revoked: revoke all, then grant queue by queue.
--
-- Example:
--     select trunkline.revoke_rights('pg_monitor', 'emails');
declare
    name text := trunkline.check_role(role);
    of_queue text;
begin
    lock table trunkline.migration in share row exclusive mode; -- see trunkline.lock_queue
    if queue is not null then
        perform trunkline.check_queue(queue);
        if exists (select from trunkline.granted g where g.role = name and g.queue = '') then
            raise exception '% has rights in every queue', quote_ident(name) using errcode = 'object_not_in_prerequisite_state',
                hint = 'Revoke them everywhere, then grant them queue by queue.';
        end if;
    end if;
    delete from trunkline.granted g where g.role = name and (g.queue = revoke_rights.queue or revoke_rights.queue is null);
    for of_queue in select q.name from trunkline.queue q where q.name = queue or queue is null loop
        perform trunkline.wait_for_rewrite(of_queue);
        execute format('revoke all on trunkline.%I, trunkline.%I, trunkline.%I from %I', 'queue_' || of_queue, 'dead_' || of_queue,
                       'archive_' || of_queue, name);
        -- If the payload's type was dropped, there are no payloads, and the view is gone.
        execute format('revoke all (due_at, size, %s metadata, id) on trunkline.%I from %I',
                       case when trunkline.payload_type(of_queue) is not null then 'payload,' end, 'queue_' || of_queue, name);
        if to_regclass(format('trunkline.%I', 'messages_' || of_queue)) is not null then
            execute format('revoke all on trunkline.%I from %I', 'messages_' || of_queue, name);
        end if;
        execute format('revoke all on sequence trunkline.%I from %I', 'id_' || of_queue, name);
        if exists (select from trunkline.queue q where q.name = of_queue and q.uniqueness) then
            execute format('revoke all on trunkline.%I from %I', 'unique_' || of_queue, name);
        end if;
        if to_regclass(format('trunkline.%I', 'limit_' || of_queue)) is not null then
            execute format('revoke all on trunkline.%I from %I', 'limit_' || of_queue, name);
        end if;
        if exists (select from trunkline.queue q where q.name = of_queue and q.lanes > 0) then
            execute format('revoke all on trunkline.%I, trunkline.%I from %I', 'lane_' || of_queue, 'line_' || of_queue, name);
        end if;
        perform trunkline.apply_rights(of_queue);
    end loop;
    execute format('revoke all on trunkline.migration, trunkline.version, trunkline.queue, trunkline.bucket, trunkline.floor, trunkline.waiting, trunkline.worker, trunkline.schedule, trunkline.stripe, trunkline.audit, trunkline.history, trunkline.relay, trunkline.template from %I', name);
    if to_regclass('trunkline.moving') is not null then
        execute format('revoke all on trunkline.moving from %I', name);
    end if;
    execute format('revoke all on schema %I from %I', rtrim('trunkline.', '.'), name);
    perform trunkline.apply_shared_rights(); -- grants again what the role's other rights need
end $$;
