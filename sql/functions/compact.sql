create or replace function trunkline.compact(
    queue text, at_least bigint default 33554432, max_pause interval default '2 s', if_held bool default false
) returns table (freed bigint, refused text)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Gives the disk space of deleted rows back to the system, even while an old snapshot prevents vacuum from doing so.
-- Copies the messages into an empty file. Returns the number of freed bytes. If something was in
-- the way, such as a session, also returns the reason; call the function again later. Other
-- sessions wait: for at most 20 ms until no session uses the table, and then for about 1 ms per MB
-- of the table. The library's consumers call it with if_held for tables of 32 MB or more: every ten
-- seconds, or as rarely as every minute while calls free nothing. If all consumers use SQL, call it
-- with if_held from a cron job.
--
-- at_least: the minimum number of bytes to free. If messages occupy more than a tenth of the space,
-- the function frees nothing and returns no reason. max_pause: if copying would probably take
-- longer, the function does nothing. For each second, the table may have 1.5 GB, and its messages
-- 50 MB and 100,000 rows. If there are more messages, it returns no reason. Other sessions may wait
-- for this time. if_held: the function does nothing while vacuum can remove the rows. Vacuum cannot
-- while a session or a prepared transaction is older than a minute or 20,000 transactions, or while
-- a replication slot or a standby holds back 20,000 transactions.
--
-- A transaction above read committed whose snapshot is older than the copy sees an empty queue afterwards, as after
-- `truncate`. Nothing is copied while pg_dump runs.
--
-- Example:
--     select freed, refused from trunkline.compact('emails');
#variable_conflict use_variable
declare
    name text;
    main regclass;
    holder text;
    is_exclusive bool;
    outcome record;
begin
    perform trunkline.check_queue(queue);
    if at_least is null then
        raise exception 'at_least must not be null' using errcode = 'invalid_parameter_value', hint = 'Leave it out, or pass a number of bytes.';
    elsif max_pause is null or max_pause <= '0' then
        raise exception 'max_pause must be more than zero, not %', coalesce(max_pause::text, 'null')
            using errcode = 'invalid_parameter_value', hint = 'Leave it out, or pass an interval of more than zero.';
    elsif max_pause > '36500 days' then
        raise exception 'a max_pause of % is out of bounds', max_pause using errcode = 'invalid_parameter_value',
            hint = 'It is more than zero and at most 36500 days.';
    end if;
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        raise exception 'a queue can be compacted only in a transaction that is read committed'
            using errcode = 'invalid_transaction_state', hint = 'Call the function outside of this transaction, whose snapshot may not show all messages.';
    end if;
    freed := 0;
    if if_held and not trunkline.is_held() then
        return next;
        return;
    end if;
    foreach name in array array['queue_', 'unique_', 'line_', 'lane_'] loop
        name := format('trunkline.%I', name || queue);
        main := to_regclass(name);
        continue when main is null;
        select case when l.pid is null then 'a prepared transaction'
                    else format('session %s (%s)', l.pid, coalesce(nullif(a.application_name, ''), 'without a name')) end,
               l.mode = 'AccessExclusiveLock' into holder, is_exclusive
        from pg_locks l left join pg_stat_activity a on a.pid = l.pid
        where l.locktype = 'relation' and l.relation = main and l.database = (select d.oid from pg_database d where d.datname = current_database())
          and l.granted and l.pid is distinct from pg_backend_pid()
          and l.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
        order by l.mode = 'AccessExclusiveLock' desc, l.pid limit 1;
        -- The size of a table cannot be read while another session has locked it exclusively.
        if is_exclusive then
            refused := holder || ' has locked its table';
            continue;
        end if;
        continue when pg_total_relation_size(main) < at_least;
        begin
            -- Only roles that may delete from the table can lock it. The lock blocks vacuum and
            -- other compactions, but no producer or consumer.
            execute format('lock table only %s in share update exclusive mode nowait', name);
        exception when lock_not_available then
            -- Vacuum and compactions take the same lock as this call, and no stronger one at first.
            refused := coalesce(holder || ' has locked its table', 'a vacuum or another compaction is running');
            continue;
        end;
        begin
            execute format('select r.freed, r.refused from trunkline.rewrite(null::%s[], $1, $2, $3) r', name) into outcome
                using main, at_least, max_pause;
            freed := outcome.freed;
            refused := coalesce(outcome.refused, refused);
        exception
            -- A vacuum of the TOAST table began during the copy: `truncate` locks that table, too.
            -- Comes first, because the next condition stands for its whole class of errors.
            when lock_not_available then
                refused := 'other sessions used it for longer than 20 ms';
            when object_not_in_prerequisite_state or program_limit_exceeded then
                refused := sqlerrm;
        end;
        exit when freed > 0; -- only one table, because it stays locked until the transaction ends
    end loop;
    refused := case when freed = 0 then refused end;
    return next;
end $$;
