create or replace function trunkline.take(queue text, n int default 1, wait interval default '0')
    returns table (id bigint, attempt int, enqueued_at timestamptz, payload text, metadata jsonb)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Takes up to n messages that are due, oldest first, in the caller's transaction: at most once where it commits at once,
-- exactly once for effects in the same transaction. The rest of a row that is cut is hidden until the commit.
--
-- wait: how long to wait for a message where none is due, at most 1 minute. It looks at once, then after 10 ms, then after
-- twice as long each time, up to 200 ms. With none by then it returns no rows; earlier only if it had to bury messages whose last
-- lease ran out, which is to be committed. A pause and limits are waited for alike. A call that waits costs its connection, and while it waits the snapshot of its
-- statement keeps vacuum, in all of the database, from what died since. Between two looks it holds no lock and has no
-- transaction id. It can be cancelled, and statement_timeout ends it. A transaction that is repeatable
-- read or serializable, or has written something, cannot wait. A client that can LISTEN does better: it hears at once, on an
-- idle connection that holds nothing.
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
    setting text;
    known text;
    reached timestamptz;
    seconds float8;
    pause float8 := 0.01;
begin
    if wait = '0' then
        perform trunkline.check_queue(queue);
        return query execute format(look, 'do_take_' || queue, trunkline.in_lanes(queue, '$2'))
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
            -- Nothing was changed. Undone, the look lets go of its locks on the tables; it must not lose the floor that it found.
            raise exception sqlstate 'TL000';
        exception
            when sqlstate 'TL000' then
                perform set_config(setting, known, false);
            when undefined_function then
                perform trunkline.check_queue(queue); -- dropped since it was looked for
                raise;
        end;
        perform pg_sleep(least(pause, seconds));
        seconds := seconds - pause;
        pause := least(2 * pause, 0.2);
    end loop;
end $$;
