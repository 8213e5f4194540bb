-- Policies restrict roles to the rows of their own queues in tables that all queues share. The roles get rights to columns, because a right to a whole table
-- allows locking it. Functions delete rows for them.
update trunkline.bucket set tokens = 0 where not (tokens between -2e9 and 1e9);
update trunkline.bucket set filled_at = clock_timestamp() where not isfinite(filled_at);
alter table trunkline.bucket
    add constraint bucket_tokens check (tokens between -2e9 and 1e9),
    add constraint bucket_filled_at check (isfinite(filled_at));
-- A relay's name is unique in its queue.
alter table trunkline.relay drop constraint pk_relay, add constraint pk_relay primary key (queue, name);

-- Policies for reading, consuming and relaying.
do $$
declare
    holds text := 'has_table_privilege(to_regclass(format(''trunkline.%I'', ''queue_'' || queue))::oid, ''%s'')';
    reads text := replace(holds, '%s', 'select');
    consumes text := replace(holds, '%s', 'delete');
    produces text := 'has_column_privilege(to_regclass(format(''trunkline.%I'', ''queue_'' || queue))::oid, ''payload'', ''insert'')';
    shared text;
begin
    foreach shared in array array['floor', 'bucket', 'waiting', 'worker', 'relay', 'audit'] loop
        execute format('alter table trunkline.%I enable row level security', shared);
    end loop;
    foreach shared in array array['floor', 'bucket', 'worker'] loop
        execute format('create policy reads on trunkline.%I for select using (%s)', shared, reads);
        execute format('create policy consumes on trunkline.%I using (%s)', shared, consumes);
    end loop;
    execute format('create policy consumes on trunkline.waiting using (%s)', consumes);
    execute format('create policy reads on trunkline.relay for select using (%s)', reads);
    execute format('create policy relays on trunkline.relay using (%s or %s)', consumes, produces);
    execute 'create policy reads on trunkline.audit for select using (true)';
    execute format('create policy acts on trunkline.audit for insert with check (queue is null or %s)', consumes);
end $$;

-- Creates an empty function, which the functions of this version replace next. See create_queue.
create function trunkline.keep_letter() returns trigger language plpgsql as 'begin return new; end';
do $$
declare
    q trunkline.queue;
    a record;
    shared text := 'trunkline.floor, trunkline.bucket, trunkline.waiting, trunkline.worker, trunkline.relay, trunkline.audit';
begin
    for q in select * from trunkline.queue loop
        execute format('create trigger keep_letter before insert or update of id on trunkline.%I for each row execute function trunkline.keep_letter()', 'dead_' || q.name);
        execute format('create trigger keep_letter before insert on trunkline.%I for each row when (new.id < 0) execute function trunkline.keep_letter()', 'archive_' || q.name);
        if q.lanes > 0 then
            -- Adds rows that leases lock: see create_queue.
            execute format('insert into trunkline.%1$I (lane) select -1 - l.lane from trunkline.%1$I l where l.lane >= 0', 'lane_' || q.name);
        end if;
        if coalesce(q.max_leased, q.per_second) is not null then
            execute format('create table trunkline.%I ()', 'limit_' || q.name);
        end if;
    end loop;
    -- The migration grants the remaining rights after it has replaced the functions.
    for a in select distinct g.role, g.queue, g.kind from trunkline.granted g join pg_roles r on r.rolname = g.role loop
        execute format('revoke all on %s from %I', shared, a.role);
        for q in select * from trunkline.queue u where u.uniqueness and a.queue in (u.name, '') loop
            execute format('revoke all on trunkline.%I from %I', 'unique_' || q.name, a.role);
        end loop;
    end loop;
end $$;
