create or replace function trunkline.set_schedule(
    name text, queue text, expression text, payload text, zone text default 'UTC', metadata jsonb default null, missed text default 'once',
    priority int default 0, key text default null
) returns bool
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Creates or changes a schedule: at each tick of the expression, one message with this payload is enqueued, no matter
-- how many processes run. Does nothing if the schedule is already the same, so that a program can declare its schedules
-- at every start; returns whether something changed. Ticks are made by processes with a worker and by `trunkline
-- schedule run`: SQL alone makes none.
--
-- name: the same rules as for a queue's name. expression: five fields of cron, or six with seconds first (`0 3 * *
-- mon-fri`); `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`; or `every 90 seconds` (minutes, hours, days),
-- which counts from 1970-01-01 UTC. payload: text of the queue's type. It is read with the session's settings
-- (DateStyle and similar), and stored so that the ticks depend on no setting. In a queue of bytea, a backslash is only
-- for hex notation, such as '\x0aff'. zone: the time zone in which the fields are read. metadata: the metadata of each
-- message, to which `schedule` (the name) and `tick` (the time, UTC) are added. missed: which ticks are made if
-- several are due together, or the last one is old, because no process made them in time: `once` makes only the last
-- one; `skip` makes only the last one, and only if it is at most a minute old; `each` makes all, but at most the last
-- 1,000. priority: the priority of each message, from 0, the lowest, in a queue with priorities. key: the key of each
-- message, in a queue with keys.
--
-- Some errors, such as a field that is out of bounds, are found only by a process that makes ticks; they then appear in
-- the column problem of trunkline.schedule.
--
-- Example:
--     select trunkline.set_schedule('reminders', 'emails', '0 9 * * mon-fri', '{"kind": "reminder"}', zone => 'Europe/Berlin');
#variable_conflict use_variable
declare
    known trunkline.schedule;
    same_times bool;
begin
    perform trunkline.check_queue(queue);
    perform trunkline.check_schedule(name, expression, zone, missed);
    perform trunkline.check_priority(queue, priority);
    perform trunkline.check_keys(queue, case when key is not null then array[key] end, 1);
    if payload is null then
        raise exception 'the payload of schedule % is null', quote_literal(name) using errcode = 'null_value_not_allowed',
            hint = 'Pass the payload as text, of the type of the queue.';
    end if;
    execute format('select trunkline.written((%s)[1])', trunkline.converted(queue, '$1', false, array[payload])) into payload using payload;
    metadata := nullif(metadata, '{}');
    perform trunkline.check_metadata(metadata); -- so that the error shows what was passed
    perform trunkline.check_metadata(coalesce(metadata, '{}') || jsonb_build_object('schedule', name, 'tick', '2000-01-01T00:00:00Z'));
    perform trunkline.right_schedules();
    select * into known from trunkline.schedule s where s.name = name for update;
    if (known.queue, known.expression, known.zone, known.payload, known.metadata, known.missed, known.priority, known.key)
       is not distinct from (queue, expression, zone, payload, metadata, missed, priority, key) then
        return false;
    end if;
    same_times := (known.expression, known.zone) is not distinct from (expression, zone);
    insert into trunkline.schedule as s (name, queue, expression, zone, payload, metadata, missed, priority, key, next_at)
    values (name, queue, expression, zone, payload, metadata, missed, priority, key, clock_timestamp())
    on conflict on constraint pk_schedule do update
        set queue = excluded.queue, expression = excluded.expression, zone = excluded.zone, payload = excluded.payload,
            metadata = excluded.metadata, missed = excluded.missed, priority = excluded.priority, key = excluded.key, placed = same_times and s.placed,
            next_at = case when same_times then coalesce(s.owed_at, s.next_at) else excluded.next_at end, owed_at = null,
            problem = case when same_times then s.problem end;
    perform pg_notify('trunkline._schedules', '');
    return true;
end $$;
