create or replace function trunkline.drop_queue(queue text, cascade bool default false) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '10s' set client_min_messages = warning as $$
-- Drops a queue and everything in it, including its dead letters and its archive.
--
-- cascade: whether to also drop objects that depend on the queue's tables, types and functions,
-- such as a view or a column, no matter which role owns them. Without cascade the call fails if
-- there is such an object, and the error names it.
--
-- Example:
--     select trunkline.create_queue('obsolete', 'text');
--     select trunkline.drop_queue('obsolete');
declare
    routine regprocedure;
    next_id bigint;
    along text := case when cascade then ' cascade' else '' end;
    others text;
    tables text;
begin
    perform trunkline.lock_queue(queue);
    perform trunkline.check_queue(queue);
    -- Names the tables in the order in which dequeues lock them, to avoid deadlocks.
    select string_agg(format('trunkline.%I', c.relname), ', ' order by t.nr) into tables
    from unnest(array['limit_', 'lane_', 'line_', 'queue_', 'unique_', 'dead_', 'archive_']) with ordinality t(kind, nr)
    join pg_class c on c.relname = t.kind || queue
    where c.relkind = 'r'
      and c.relnamespace = (select s.relnamespace from pg_class s where s.oid = 'trunkline.queue'::regclass);
    -- While this call waits for the lock, later calls queue behind it, and other calls lock these tables in different
    -- orders. So each try gives up after half a second. The server looks for deadlocks only after a second.
    perform set_config('lock_timeout', '500ms', true);
    for try in 1 .. 20 loop
        begin
            perform from trunkline.floor f where f.queue = drop_queue.queue for update;
            execute format('lock table %s in access exclusive mode', tables);
            exit;
        exception when lock_not_available or deadlock_detected then
            if try = 20 then
                perform trunkline.raise_in_use(queue, 'ten seconds');
            end if;
        end;
    end loop;
    perform set_config('lock_timeout', '10s', true);
    next_id := trunkline.repair_sequence(queue);
    insert into trunkline.dropped as d (queue, next_id) values (drop_queue.queue, next_id)
    on conflict on constraint pk_dropped do update set next_id = excluded.next_id;
    begin
        execute format('drop trigger if exists free_keys on trunkline.%I', 'queue_' || queue);
        execute format('drop trigger if exists free_all_keys on trunkline.%I', 'queue_' || queue);
        for routine in
            select p.oid from pg_proc p
            where p.proname = any (array(select 'do_' || t.name || '_' || queue from trunkline.template t))
              and p.pronamespace = (select c.relnamespace from pg_class c where c.oid = 'trunkline.queue'::regclass)
            -- functions whose body is an expression come first, because they depend on other functions
            order by p.prosqlbody is null
        loop
            execute format('drop function %s%s', routine, along);
        end loop;
        execute format('drop view if exists trunkline.%I%s', 'messages_' || queue, along);
        execute format('drop table trunkline.%I, trunkline.%I, trunkline.%I%s', 'queue_' || queue, 'dead_' || queue, 'archive_' || queue, along);
        execute format('drop table if exists trunkline.%I, trunkline.%I%s', 'unique_' || queue, 'limit_' || queue, along);
        execute format('drop table if exists trunkline.%I, trunkline.%I%s', 'lane_' || queue, 'line_' || queue, along);
        execute format('drop domain if exists trunkline.%I%s', 'payload_' || queue, along);
    exception when dependent_objects_still_exist then
        get stacked diagnostics others = pg_exception_detail;
        raise exception 'cannot drop queue % because other objects depend on it', quote_literal(queue) using errcode = 'dependent_objects_still_exist', detail = others,
            hint = 'Drop them first, or call trunkline.drop_queue(queue, cascade => true) to drop them, too.';
    end;
    delete from trunkline.floor f where f.queue = drop_queue.queue;
    delete from trunkline.granted g where g.queue = drop_queue.queue;
    delete from trunkline.queue q where q.name = drop_queue.queue;
    if not trunkline.build_dispatch('10s') then
        raise exception 'queue % cannot be dropped while another queue is being created or dropped', quote_literal(queue)
            using errcode = 'lock_not_available',
                  hint = 'A transaction that created or dropped a queue has been open for ten seconds. End it (see pg_stat_activity and pg_prepared_xacts), then try again.';
    end if;
    perform pg_notify('trunkline.' || queue, ''); -- so that sleeping consumers notice
end $$;
