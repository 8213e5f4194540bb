-- Gives every role its rights to what all queues share.
create or replace function trunkline.apply_shared_rights() returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    g record;
begin
    for g in select distinct a.role, a.kind from trunkline.granted a join pg_roles r on r.rolname = a.role loop
        execute format('grant usage on schema %I to %I', rtrim('trunkline.', '.'), g.role);
        execute format('grant select on trunkline.migration, trunkline.version, trunkline.queue, trunkline.floor, trunkline.stripe to %I', g.role);
        -- A relay keeps its place with the right to enqueue what it read, or to dequeue what it sends.
        execute format('grant select, insert, update, delete on trunkline.relay to %I', g.role);
        if g.kind <> 'producer' then
            execute format('grant select, update (tokens, filled_at) on trunkline.bucket to %I', g.role);
            execute format('grant update on trunkline.floor to %I', g.role);
            execute format('grant select, insert, update, delete on trunkline.waiting to %I', g.role);
            execute format('grant select, insert, delete on trunkline.worker to %I', g.role);
        end if;
        if g.kind = 'operator' then
            execute format('grant insert on trunkline.audit to %I', g.role);
        end if;
    end loop;
    -- The payloads of all queues' schedules stand in one table, and what was done with all queues in another.
    for g in select distinct a.role from trunkline.granted a join pg_roles r on r.rolname = a.role where a.kind = 'operator' and a.queue = '' loop
        execute format('grant select, insert, update, delete on trunkline.schedule to %I', g.role);
        execute format('grant select on trunkline.audit to %I', g.role);
    end loop;
end $$;
