create or replace function trunkline.rewrite(
    rows anyarray, main regclass, at_least bigint, max_pause interval, out freed bigint, out refused text
)
    language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '20ms' set row_security = off
    set jit = off set max_parallel_workers_per_gather = 0 set client_min_messages = warning as $$
-- Copies the rows of a table, truncates it, and inserts them again (see trunkline.compact). rows: null; its type is an
-- array of the table's rows. Runs with the owner's right to truncate. The caller proves its own rights with a lock.
--
-- No row is lost: the rows are read with a snapshot that is taken after the exclusive lock was
-- granted, and every transaction that had written to the table has ended by then. Functions that
-- read the tables of a queue are volatile for the same reason. A stable function reads with its
-- caller's snapshot, which may be older than the lock that the function waits for.
#variable_conflict use_variable
declare
    -- Expected speeds: bytes read, bytes copied, and rows copied, per second.
    read_speed constant float8 := 1.5e9;
    copy_speed constant float8 := 5e7;
    row_speed constant float8 := 1e5;
    -- An array has at most 1 GB. What arrives after the estimate needs room, too.
    most constant bigint := 800000000;
    seconds constant float8 := extract(epoch from max_pause);
    size constant bigint := pg_total_relation_size(main);
    columns text;
    width text;
    live bigint;
    bytes bigint;
    triggers text[];
    trigger text;
    count bigint;
begin
    -- An array of another type could convert the rows with functions of that type.
    if pg_typeof(rows)::oid is distinct from (
           select t.typarray from pg_class c join pg_type t on t.oid = c.reltype
           where c.oid = main and c.relnamespace = rtrim('trunkline.', '.')::regnamespace)
       or not exists (select from pg_locks l where l.relation = main and l.pid = pg_backend_pid() and l.mode = 'ShareUpdateExclusiveLock' and l.granted
                      and l.database = (select d.oid from pg_database d where d.datname = current_database()))
    then
        raise exception 'only trunkline.compact rewrites a table' using errcode = 'insufficient_privilege', hint = 'Call trunkline.compact.';
    end if;
    freed := 0;
    if pg_relation_size(main) / read_speed > seconds then
        refused := format('its table has %s, and would take longer than %s to read', pg_size_pretty(pg_relation_size(main)), max_pause);
        return;
    end if;
    -- While a session waits for an exclusive lock, all others wait behind it. So this function does
    -- not wait for transactions that began more than a second ago. A session that waits for a lock
    -- itself is not in the way.
    select case when l.pid is null then 'a prepared transaction uses it'
                else format('session %s (%s) uses it in a transaction that began at %s', l.pid, coalesce(nullif(a.application_name, ''), 'without a name'),
                            date_trunc('second', a.xact_start)) end into refused
    from pg_locks l left join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'relation' and l.relation = main and l.database = (select d.oid from pg_database d where d.datname = current_database())
      and l.granted and l.pid is distinct from pg_backend_pid() and (l.pid is null or a.xact_start < clock_timestamp() - interval '1 s')
    order by a.xact_start limit 1;
    -- pg_dump takes its snapshot before its locks, soon after it has connected.
    refused := coalesce(refused, (
        select format('session %s is pg_dump', a.pid) from pg_stat_activity a
        where a.datname = current_database() and a.application_name = 'pg_dump' limit 1));
    -- `truncate` also locks the TOAST table, which autovacuum cleans up apart from its table.
    refused := coalesce(refused, (
        select 'a vacuum of its TOAST table is running' from pg_locks l join pg_class c on c.reltoastrelid = l.relation
        where c.oid = main and l.locktype = 'relation' and l.database = (select d.oid from pg_database d where d.datname = current_database())
          and l.pid is distinct from pg_backend_pid() and l.mode not in ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock') limit 1));
    if exists (select from pg_constraint c where c.confrelid = main and c.contype = 'f') then
        refused := 'a foreign key refers to its table';
    elsif exists (select from pg_publication_tables t join pg_publication p using (pubname) join pg_class c on c.relname = t.tablename
                  where c.oid = main and t.schemaname = rtrim('trunkline.', '.') and not (p.pubinsert and p.pubtruncate)) then
        refused := 'a publication contains its table, but not both truncate and insert';
    end if;
    if refused is not null then
        return;
    end if;
    select string_agg(quote_ident(a.attname), ', ' order by a.attnum) filter (where a.attgenerated = ''),
           string_agg(format('coalesce(pg_column_size(q.%I), 0)', a.attname), ' + ' order by a.attnum) into columns, width
    from pg_attribute a where a.attrelid = main and a.attnum > 0 and not a.attisdropped;
    -- Estimates the cost before the lock, while all other sessions work.
    execute format('select count(*), coalesce(sum(l.width), 0) from (select %s as width from %s q limit $1) l', width, main)
        into live, bytes using ceil(seconds * row_speed) + 1;
    if live > seconds * row_speed or bytes > seconds * copy_speed or size < at_least + 10 * (bytes + 100 * live) then
        return; -- messages fill most of the table, so a copy would free little
    elsif bytes + 100 * live > most then
        refused := format('its messages have %s, and a compaction copies at most %s', pg_size_pretty(bytes + 100 * live), pg_size_pretty(most));
        return;
    end if;
    begin
        execute format('lock table only %s in access exclusive mode', main);
    exception when lock_not_available then
        refused := 'other sessions used it for longer than 20 ms';
        return;
    end;
    execute format('select array_agg(l.q) from (select (q.*)::%1$s as q from only %1$s q limit $1) l', main) into rows using 2 * live + 10001;
    if cardinality(rows) > 2 * live + 10000 then
        refused := 'too many messages arrived during the compaction';
        return;
    end if;
    -- Copying enqueues and deletes no messages, so the triggers must not run.
    select array_agg(format('enable %s trigger %I', case t.tgenabled when 'R' then 'replica' when 'A' then 'always' else '' end, t.tgname)) into triggers
    from pg_trigger t where t.tgrelid = main and not t.tgisinternal and t.tgenabled <> 'D';
    foreach trigger in array coalesce(triggers, '{}') loop
        execute format('alter table only %s %s', main, regexp_replace(trigger, '^enable +(replica |always )?', 'disable '));
    end loop;
    execute format('truncate only %s', main);
    execute format('insert into %1$s (%2$s) overriding system value select %2$s from unnest($1) r', main, columns) using rows;
    get diagnostics count = row_count;
    if count <> coalesce(cardinality(rows), 0) then
        raise exception 'a copy of % has % rows instead of %', main, count, cardinality(rows) using errcode = 'feature_not_supported',
            hint = 'Nothing was changed. A rule of the table may be the cause: remove it.';
    end if;
    foreach trigger in array coalesce(triggers, '{}') loop
        execute format('alter table only %s %s', main, trigger);
    end loop;
    -- A dump that began in the meantime waits for the table and would find it empty. This error
    -- makes the caller undo the copy.
    perform pg_stat_clear_snapshot();
    if exists (select from pg_stat_activity a where a.datname = current_database() and a.application_name = 'pg_dump') then
        raise exception 'pg_dump has begun' using errcode = 'object_not_in_prerequisite_state', hint = 'Compact the queue after the dump.';
    end if;
    freed := size - pg_total_relation_size(main);
end $$;
