create or replace function trunkline.apply_shared_rights() returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Grants every role its rights on the tables that all queues share. The rights are on columns, because a role that may
-- update or delete in a whole table may also lock the table against all others. Row security policies of these tables
-- restrict a role to the rows of its own queues (see step 20), and rows are deleted by functions.
declare
    g record;
begin
    for g in select distinct a.role, a.kind from trunkline.granted a join pg_roles r on r.rolname = a.role loop
        execute format('grant usage on schema %I to %I', rtrim('trunkline.', '.'), g.role);
        execute format('grant select on trunkline.migration, trunkline.version, trunkline.queue, trunkline.floor, trunkline.stripe to %I', g.role);
        -- The doctor looks up which functions a queue should have.
        execute format('grant select (part, name) on trunkline.template to %I', g.role);
        -- A relay stores its position with the right to enqueue what it has read, or to dequeue what it sends.
        execute format('grant select, insert, update (position, holder, held_until, confirmed, refused, held, lag, last_error, failed_at, started_at, seen_at) '
                       'on trunkline.relay to %I', g.role);
        if g.kind <> 'producer' then
            execute format('grant select, update (tokens, filled_at) on trunkline.bucket to %I', g.role);
            execute format('grant update (reached, shown) on trunkline.floor to %I', g.role);
            execute format('grant select, insert, update (alive) on trunkline.waiting to %I', g.role);
            execute format('grant select, insert (worker, queue, process, version, started_at, ended, seconds, handled, failed, running, hands, p50, p99) '
                           'on trunkline.worker to %I', g.role);
        end if;
        if g.kind = 'operator' then
            -- Grants no right on id, time or role. An entry with an id that the sequence has not
            -- yet reached would make a later action fail.
            execute format('grant insert (who, action, queue, what, token, affected) on trunkline.audit to %I', g.role);
        end if;
    end loop;
    -- Only operators of all queues get rights on these tables, because the tables contain data of
    -- all queues: the payloads of schedules, the audit and the history.
    for g in select distinct a.role from trunkline.granted a join pg_roles r on r.rolname = a.role where a.kind = 'operator' and a.queue = '' loop
        execute format('grant select, insert, update, delete on trunkline.schedule to %I', g.role);
        execute format('grant select on trunkline.audit to %I', g.role);
        execute format('grant select, insert, delete on trunkline.history to %I', g.role);
        if to_regclass('trunkline.moving') is not null then -- this table exists only if a drain has moved messages
            execute format('grant select (queue, target, size) on trunkline.moving to %I', g.role);
        end if;
    end loop;
end $$;
