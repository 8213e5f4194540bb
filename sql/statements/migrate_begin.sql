-- Two processes may find no schema at the same time. One then waits for the other when it creates
-- the same object, and afterwards at the lock. The lock is on a table and needs the owner's rights,
-- because any role could hold an advisory lock. Objects in the schema that belong to another role
-- are refused: that role could change them later, and they would run with the rights of their
-- caller.
set local search_path = pg_catalog, pg_temp;
set local standard_conforming_strings = on;
set local check_function_bodies = off;
set local client_min_messages = warning;
-- The timeouts of the role end neither a long migration nor its wait for another one. The last of
-- them is new in PostgreSQL 17.
select pg_catalog.set_config(s.name, '0', true) from pg_catalog.pg_settings s
where s.name operator(pg_catalog.=) any ('{statement_timeout,idle_in_transaction_session_timeout,transaction_timeout}'::text[]);
do $$
declare
    stranger text;
begin
    if current_setting('server_encoding') = 'SQL_ASCII' then
        raise exception 'the database has the encoding SQL_ASCII, in which PostgreSQL does not check texts'
            using errcode = 'feature_not_supported', hint = 'Use a database with the encoding UTF8.';
    end if;
    while not exists (select from pg_namespace n where n.nspname || '.' = 'trunkline.') loop
        begin
            execute format('create schema %I', rtrim('trunkline.', '.'));
        exception when unique_violation or duplicate_schema then
            null;
        end;
    end loop;
    select pg_get_userbyid(n.nspowner) into stranger from pg_namespace n
    where n.nspname || '.' = 'trunkline.' and n.nspowner <> quote_ident(current_user)::regrole;
    if stranger is null then
        select pg_get_userbyid(o.owner) into stranger
        from (select relowner, relnamespace from pg_class union all select proowner, pronamespace from pg_proc
              union all select typowner, typnamespace from pg_type) o(owner, namespace)
        join pg_namespace n on n.oid = o.namespace
        where n.nspname || '.' = 'trunkline.' and o.owner <> quote_ident(current_user)::regrole limit 1;
    end if;
    if stranger is not null then
        raise exception 'the schema, or something in it, belongs to %, not to %', stranger, current_user
            using errcode = 'insufficient_privilege',
                  hint = case when stranger = 'pg_database_owner'
                              then 'Use a schema that belongs to Trunkline alone: name it with --schema NAME, or with schema=NAME in the connection string.'
                              else format('Migrate as %s, or give the schema and all that is in it to %s, if it is trusted.', stranger, current_user) end;
    end if;
    while to_regclass('trunkline.migration') is null loop
        begin
            create table trunkline.migration (
                version int constraint pk_migration primary key, name text not null, applied_at timestamptz not null default now(),
                functions text not null default '');
        exception when unique_violation or duplicate_table or duplicate_object then
            null;
        end;
    end loop;
end $$;
set local lock_timeout = 0; -- another migration may take minutes
lock table trunkline.migration in share row exclusive mode;
-- Every other lock is free soon, or this migration begins again:
-- a statement that waits for a table holds up all later statements that use the table.
set local lock_timeout = '500ms';
-- Before step 16 the rows were only in `migration`.
do $$
begin
    if to_regclass('trunkline.version') is null then
        create table trunkline.version (
            version int constraint pk_version primary key, name text not null, applied_at timestamptz not null default now(),
            functions text not null, oldest int not null constraint ck_version_oldest check (oldest <= version));
        insert into trunkline.version select m.version, m.name, m.applied_at, m.functions, m.version from trunkline.migration m;
    end if;
    -- A dump of the schema alone has the tables and functions, and no record of their version.
    if not exists (select from trunkline.version) and to_regclass('trunkline.queue') is not null
       and to_regprocedure('trunkline.check_queue(text)') is not null then
        raise exception 'the schema has tables, but no record of their version, as after a restore without data'
            using errcode = 'object_not_in_prerequisite_state',
                  hint = format('Restore the data of its tables, too. If it has none to keep, remove the schema and migrate again: drop schema %I cascade',
                                rtrim('trunkline.', '.'));
    end if;
end $$;
