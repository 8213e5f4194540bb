create or replace function trunkline.lease(queue text, n int default 1, lease interval default null, wait interval default '0')
    returns table (id bigint, attempt int, enqueued_at timestamptz, due_at timestamptz, payload text, metadata jsonb)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Leases up to n due messages, oldest first: no other consumer gets them until the lease ends. End a lease with ack,
-- archive, retry, bury or release, passing id and attempt; otherwise it expires. Commit immediately: the rest of a row
-- that was split is invisible to consumers until the commit. A message whose lease expired is leased alone, because it may
-- have crashed its consumer: otherwise its neighbours would lose an attempt with it.
--
-- lease: more than zero and at most 365 days; null means the queue's setting. wait: how long to
-- wait if no message is due, at most 1 minute; see trunkline.take for what a wait costs and where
-- it is not possible.
--
-- Example:
--     select id, attempt, payload from trunkline.lease('emails', 10, lease => '5 minutes', wait => '20 seconds');
declare
    look text := $q$
        select b.id + m.k, b.attempt, b.enqueued_at, b.due_at, m.payload::text, m.metadata
        from trunkline.%I($1, $2, %s, apart => true) b,
             lateral (select generate_series(0, b.size - 1) as k, unnest(b.payload) as payload, unnest(b.metadata) as metadata) m $q$;
    priorities int;
    setting text;
    known text;
    reached timestamptz;
    seconds float8;
    pause float8 := 0.01;
begin
    if wait = '0' then
        select q.priorities into priorities from trunkline.queue q where q.name = queue;
        if not found then
            perform trunkline.check_queue(queue); -- fails, with a hint
        elsif n = 1 then
            -- Reads each row as its only message, which costs half as much as a query that unnests rows.
            look := 'select b.id, b.attempt, b.enqueued_at, b.due_at, b.payload[1]::text, b.metadata[1] from trunkline.%I($1, $2, %s, apart => true) b';
        end if;
        return query execute format(look, 'do_lease_' || queue, trunkline.floors(priorities, '$3'))
            using trunkline.check_n(n), lease, trunkline.floor(queue);
        return;
    end if;
    seconds := trunkline.check_wait(wait);
    setting := format('trunkline.floor_%s', to_regclass(format('trunkline.%I', 'queue_' || queue))::oid); -- see trunkline.floor
    loop
        -- This block is explained in trunkline.take.
        begin
            perform trunkline.check_queue(queue);
            reached := trunkline.floor(queue, keep => false);
            known := current_setting(setting, true);
            return query execute format(look, 'do_lease_' || queue, trunkline.in_lanes(queue, '$3'))
                using trunkline.check_n(n), lease, reached;
            if found or seconds <= 0 or n = 0 or pg_current_xact_id_if_assigned() is not null then
                perform trunkline.keep_floor(queue, reached);
                return;
            end if;
            raise exception sqlstate 'TL000';
        exception
            when sqlstate 'TL000' then
                perform set_config(setting, known, false);
            when undefined_function then
                perform trunkline.check_queue(queue); -- the queue was dropped in the meantime
                raise;
        end;
        perform pg_sleep(least(pause, seconds));
        seconds := seconds - pause;
        pause := least(2 * pause, 0.2);
    end loop;
end $$;
