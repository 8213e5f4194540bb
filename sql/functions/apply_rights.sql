create or replace function trunkline.apply_rights(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Grants every role in trunkline.granted its rights on one queue. Skips roles that have been dropped, and a queue whose
-- payload type was dropped.
declare
    g record;
    main text := format('trunkline.%I', 'queue_' || queue);
    dead text := format('trunkline.%I', 'dead_' || queue);
    archive text := format('trunkline.%I', 'archive_' || queue);
    laned bool := (select q.priorities > 1 from trunkline.queue q where q.name = queue);
    uniqueness bool := (select q.uniqueness from trunkline.queue q where q.name = queue);
    limited bool := to_regclass(format('trunkline.%I', 'limit_' || queue)) is not null;
    keyed bool := (select q.lanes > 0 from trunkline.queue q where q.name = queue);
begin
    if trunkline.payload_type(queue) is null then
        return;
    end if;
    perform trunkline.wait_for_rewrite(queue) where exists (select from trunkline.granted a where a.queue in (apply_rights.queue, ''));
    for g in
        select distinct a.role, a.kind from trunkline.granted a join pg_roles r on r.rolname = a.role
        where a.queue in (apply_rights.queue, '')
    loop
        if uniqueness then
            execute format('grant select, insert, update (id, until, claimed_at) on trunkline.%I to %I', 'unique_' || queue, g.role);
        end if;
        if g.kind = 'producer' then
            execute format('grant insert (due_at, size, payload, metadata%s), select (id, size) on %s to %I',
                           case when laned then ', lane' when keyed then ', lane, keys' else '' end, main, g.role);
            execute format('grant usage on sequence trunkline.%I to %I', 'id_' || queue, g.role);
        else
            execute format('grant select, insert, update, delete on %s to %I', main, g.role);
            execute format('grant select, insert on %s, %s to %I', dead, archive, g.role);
            execute format('grant select on trunkline.%I to %I', 'messages_' || queue, g.role);
            if uniqueness then
                execute format('grant delete on trunkline.%I to %I', 'unique_' || queue, g.role);
            end if;
            if limited then
                execute format('grant select, update on trunkline.%I to %I', 'limit_' || queue, g.role);
            end if;
            if keyed then
                execute format('grant select, update on trunkline.%I to %I', 'lane_' || queue, g.role);
                execute format('grant select, insert, update, delete on trunkline.%I to %I', 'line_' || queue, g.role);
            end if;
        end if;
        if g.kind = 'operator' then
            execute format('grant update, delete on %s, %s to %I', dead, archive, g.role);
            execute format('grant usage, select on sequence trunkline.%I to %I', 'id_' || queue, g.role);
        end if;
    end loop;
end $$;
