create or replace function trunkline.build_dispatch(patience text) returns bool
    language plpgsql set search_path = pg_catalog, pg_temp set standard_conforming_strings = on set check_function_bodies = off
    set client_min_messages = warning set lock_timeout = '10s' as $$
-- Gives both variants of trunkline.enqueue a branch for each queue: the insert of one message
-- without options. trunkline.enqueue_one gets the same branches, with the options of a message. As a
-- call of a function of the queue, the insert would cost a twentieth more; by EXECUTE, five times as
-- much. This function is called whenever a queue is created or dropped. If another transaction
-- that creates or drops a queue does not end within `patience`, the function returns false and
-- changes nothing. A queue without a branch is reached by EXECUTE. A branch without a queue would be
-- an error, so drop_queue must succeed. A queue with keys has no branch, because each of its messages
-- needs a key; nor has a queue whose type shortens values, because the cast would not fail. A branch
-- of a queue of bytes leaves texts that trunkline.converted refuses to trunkline.enqueue_one.
declare
    lasts text[];
    branches text[];
    variant regprocedure;
    guard text;
    plain text := E'(pg_catalog.strpos(payload::pg_catalog.text, E\'\\\\\') operator(pg_catalog.=) 0 '
                   'or pg_catalog.starts_with(payload::pg_catalog.text, E\'\\\\x\'))';
    definition text;
    marks text[] := array[E'-- Branches for the queues, written by trunkline.build_dispatch.\n', '        -- Other queues:'];
begin
    perform set_config('lock_timeout', patience, true);
    lock table trunkline.template in share row exclusive mode; -- one session at a time; otherwise only a migration changes this table
    -- Each comparison costs a thirtieth of the call. Four queues follow each other, and a binary tree
    -- leads to the four.
    with own as materialized (
        select q.name, q.priorities > 1 as has_lanes, a.atttypid as type from trunkline.queue q
        join pg_attribute a on a.attrelid = to_regclass(format('trunkline.%I', 'dead_' || q.name)) and a.attname = 'payload'
        where q.lanes = 0
    ), whole as materialized ( -- asked once for each type, not for each queue
        select t.type, trunkline.shortens(t.type) as shortens, trunkline.base_type(t.type) = 'bytea'::regtype as is_bytes
        from (select distinct o.type from own o) t
    ), branch as (
        select o.name collate "C" as name, row_number() over (order by o.name collate "C") as nr, format(
                   E'if queue operator(pg_catalog.=) %L%s then\n'
                   '    insert into trunkline.%I as q (size, payload%s) values (1, array[payload::%I.%I]%s) returning q.id into id;\n'
                   '    if id is not null and not trunkline.announced(%L) then\n'
                   '        return id;\n'
                   '    end if;\n', o.name, case when w.is_bytes then ' /* guard */' end, 'queue_' || o.name,
                   case when o.has_lanes then ', lane' else '' end, n.nspname, t.typname, case when o.has_lanes then ', priority' else '' end, 'trunkline.' || o.name) as text
        from own o
        join whole w on w.type = o.type and not w.shortens
        join pg_type t on t.oid = o.type
        join pg_namespace n on n.oid = t.typnamespace
    ), four as (
        select max(b.name) as last, string_agg(b.text, 'els' order by b.nr) || E'end if;\n' as text from branch b group by (b.nr - 1) / 4
    )
    select array_agg(f.last order by f.last), array_agg(f.text order by f.last) into lasts, branches from four f;
    while cardinality(branches) > 1 loop
        select array_agg(coalesce(r.last, l.last) order by l.nr),
               array_agg(case when r.nr is null then l.text
                              else format(E'if queue operator(pg_catalog.<=) %L collate pg_catalog."C" then\n%selse\n%send if;\n', l.last, l.text, r.text) end
                         order by l.nr)
        into lasts, branches
        from unnest(lasts, branches) with ordinality l(last, text, nr)
        left join unnest(lasts, branches) with ordinality r(last, text, nr) on r.nr = l.nr + 1
        where l.nr % 2 = 1;
    end loop;
    for variant, guard in values
            ('trunkline.enqueue(text, anyelement, interval, jsonb, int, text, interval, bool, text)'::regprocedure, ''),
            ('trunkline.enqueue(text, text, interval, jsonb, int, text, interval, bool, text)'::regprocedure, ' and ' || plain),
            ('trunkline.enqueue_one'::regproc::regprocedure, ' and (pg_typeof(payload) <> ''text''::regtype or ' || plain || ')') loop
        if variant = 'trunkline.enqueue_one'::regproc then
            branches[1] := replace(branches[1], ' as q (size, ', ' as q (due_at, metadata, size, ');
            branches[1] := replace(branches[1], ' values (1, ', ' values (greatest(trunkline.clock() + delay, trunkline.clock()), listed, 1, ');
        end if;
        definition := pg_get_functiondef(variant);
        execute split_part(definition, marks[1], 1) || marks[1] || coalesce(replace(branches[1], ' /* guard */', guard), '') || marks[2]
                || split_part(definition, marks[2], 2);
    end loop;
    return true;
exception when lock_not_available or deadlock_detected then
    return false;
end $$;
