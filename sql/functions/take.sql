create or replace function trunkline.take(queue text, n int default 1, wait interval default '0')
    returns table (id bigint, attempt int, enqueued_at timestamptz, payload text, metadata jsonb)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Takes up to n due messages, oldest first, in the caller's transaction. Delivery is at most once if the transaction
-- commits immediately, and exactly once for effects in the same transaction. The rest of a row that was split is
-- invisible to consumers until the commit.
--
-- wait: how long to wait if no message is due, at most 1 minute. The function searches immediately,
-- then after 10 ms, then at intervals that double up to 200 ms. If the time passes without a
-- message, it returns no rows. It returns earlier without rows if it has written something that the
-- caller must commit. For example, it has buried messages whose last lease expired. The call also
-- waits while the queue is paused or a limit is reached.
--
-- A waiting call occupies its connection. While it waits, its statement's snapshot keeps vacuum, in the whole database,
-- from removing rows that died since. Between two searches the call holds no lock and has no
-- transaction id. It can be cancelled, and statement_timeout ends it. A transaction that is
-- repeatable read or serializable, or that has written something, cannot wait. If the client can
-- receive notifications, trunkline.listen is better: the client is notified immediately, on an idle
-- connection that holds no snapshot.
--
-- Example:
--     begin;
--     select id, payload from trunkline.take('emails', 10);
--     commit;
--     select id, payload from trunkline.take('emails', wait => '5 seconds');
declare
    look text := $q$
        select b.id + m.k, b.attempt, b.enqueued_at, m.payload::text, m.metadata
        from trunkline.%I($1, %s) b,
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
            look := 'select b.id, b.attempt, b.enqueued_at, b.payload[1]::text, b.metadata[1] from trunkline.%I($1, %s) b';
        end if;
        return query execute format(look, 'do_take_' || queue, trunkline.floors(priorities, '$2'))
            using trunkline.check_n(n), trunkline.floor(queue);
        return;
    end if;
    seconds := trunkline.check_wait(wait);
    setting := format('trunkline.floor_%s', to_regclass(format('trunkline.%I', 'queue_' || queue))::oid); -- see trunkline.floor
    loop
        begin
            perform trunkline.check_queue(queue);
            reached := trunkline.floor(queue, keep => false);
            known := current_setting(setting, true);
            return query execute format(look, 'do_take_' || queue, trunkline.in_lanes(queue, '$2'))
                using trunkline.check_n(n), reached;
            if found or seconds <= 0 or n = 0 or pg_current_xact_id_if_assigned() is not null then
                perform trunkline.keep_floor(queue, reached);
                return;
            end if;
            -- Nothing was changed. Undoing the search releases its locks on the tables. The handler
            -- below restores the floor that the search found.
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
