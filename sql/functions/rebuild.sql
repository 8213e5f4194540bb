create or replace function trunkline.rebuild(queue text) returns table (what text, changed bigint)
    language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '10s' set client_min_messages = warning as $$
-- Rebuilds what is derived from a queue's messages: the partitions of keys and their holders, the backlogs of keys,
-- unique keys whose messages no longer exist, the sequence of ids, the state of limits, functions and rights. Use it
-- after a switch to a logical replica, a partial restore, or manual changes of the tables; the doctor reports when it
-- is needed. It changes only what is wrong, and loses no message. Returns what it repaired, and how often.
--
-- If the queue has keys, it is blocked while its waiting messages are sorted: about 20 seconds per million messages.
-- Only the owner can call the function, like trunkline.create_queue and trunkline.alter_queue.
--
-- Example:
--     select what, changed from trunkline.rebuild('emails');
#variable_conflict use_variable
declare
    now_is trunkline.queue;
    rows text := 'queue_' || queue;
    held text := 'lane_' || queue;
    lines text := 'line_' || queue;
    uniques text := 'unique_' || queue;
    first int;
    next_id bigint;
begin
    perform trunkline.lock_queue(queue);
    perform trunkline.check_owner(); -- the call creates what is missing
    perform trunkline.check_queue(queue);
    if trunkline.payload_type(queue) is null then
        raise warning 'queue % cannot be rebuilt: its payload type was dropped, and its payloads with it', quote_literal(queue)
            using hint = 'Drop the queue, and create it again.';
        return;
    end if;
    select * into strict now_is from trunkline.queue q where q.name = queue;
    first := now_is.first_lane;
    begin
        perform trunkline.install_queue(queue); -- the statements below call its functions
    exception when lock_not_available then
        perform trunkline.raise_in_use(queue, 'ten seconds');
    end;
    if now_is.lanes > 0 then
        perform trunkline.lock_partitions(queue);
        execute format('update trunkline.%I q set keys = array_replace(q.keys, null, '''') where array_position(q.keys, null) is not null', rows);
        get diagnostics changed = row_count;
        what := 'keys that were null';
        return next;
        what := 'rows in the partition of other keys';
        changed := trunkline.sort_lanes(queue, now_is.lanes, first);
        return next;
        execute format('delete from trunkline.%I h where h.lane <> all (array(select n from generate_series($1, $1 + $2 - 1) n union all '
                       'select -1 - n from generate_series($1, $1 + $2 - 1) n))', held) using first, now_is.lanes;
        execute format('insert into trunkline.%I (lane) select case when s.locks then -1 - n else n end '
                       'from generate_series($1, $1 + $2 - 1) n, (values (true), (false)) s(locks) on conflict (lane) do nothing', held) using first, now_is.lanes;
        get diagnostics changed = row_count;
        what := 'partitions that were missing';
        return next;
        -- A leased message has a consumer, and messages behind it with the same key must wait. So a
        -- partition without a holder gets a random holder until the lease ends.
        execute format($q$
            update trunkline.%1$I h
            set holder = case when h.held_until > clock_timestamp() then h.holder else (random() * 9007199254740992)::bigint end, held_until = l.until,
                starts_until = greatest(h.starts_until, l.until), empty_at = greatest(h.empty_at, clock_timestamp())
            from (select q.lane, max(q.due_at) as until from trunkline.%2$I q
                  where q.attempt > 0 and q.error is null and q.due_at > clock_timestamp() group by q.lane) l
            where l.lane = h.lane and h.held_until < l.until $q$, held, rows);
        get diagnostics changed = row_count;
        what := 'partitions with leases and no holder';
        return next;
        execute format('update trunkline.%I h set floor = ''-infinity'' where isfinite(h.floor)', held);
        execute format('delete from trunkline.%1$I l where l.until <= clock_timestamp() and not exists '
                       '(select from trunkline.%2$I q where q.lane = l.lane and q.line = l.key) or l.lane <> $1 + trunkline.lane_of(l.key, $2)', lines, rows)
            using first, now_is.lanes;
        execute format($q$
            insert into trunkline.%1$I as l (lane, key, until)
            select q.lane, q.line, coalesce(max(q.due_at) filter (where q.error is not null and q.due_at > clock_timestamp() and q.place <= clock_timestamp()), '-infinity')
            from trunkline.%2$I q where q.line <> '' group by q.lane, q.line
            on conflict (lane, key) do update set until = excluded.until where l.until < excluded.until $q$, lines, rows);
        get diagnostics changed = row_count;
        what := 'keys whose backlog was not known';
        return next;
        if now_is.per_key = 1 then
            perform trunkline.hold_retries(queue);
        end if;
    end if;
    if now_is.uniqueness then
        execute format('delete from trunkline.%I u where u.until is null and not exists (
                            select from trunkline.%I q where q.id <= u.id and q.id >= u.id / 1024 * 1024 and q.id + q.size > u.id)', uniques, rows);
        get diagnostics changed = row_count;
        what := 'unique keys of messages that are gone';
        return next;
    end if;
    if coalesce(now_is.max_leased, now_is.per_second) is not null then
        insert into trunkline.bucket as b (queue, tokens, filled_at) values (queue, coalesce(now_is.burst, 1), clock_timestamp())
        on conflict on constraint pk_bucket do update set tokens = excluded.tokens, filled_at = excluded.filled_at
        where b.tokens > excluded.tokens or b.filled_at > excluded.filled_at;
        get diagnostics changed = row_count;
        what := 'limits in a state that cannot be';
        return next;
        execute format('create table if not exists trunkline.%I ()', 'limit_' || queue);
    end if;
    insert into trunkline.floor as f (queue) values (queue) on conflict on constraint pk_floor do update set reached = excluded.reached;
    execute format('select least(i.last_value, 9223372036854774783) + case when i.is_called then 1024 else 0 end from trunkline.%I i', 'id_' || queue) into next_id;
    what := 'sequences behind their ids';
    changed := (trunkline.repair_sequence(queue) <> next_id)::int;
    return next;
    perform trunkline.apply_rights(queue), trunkline.apply_shared_rights();
    if not trunkline.build_dispatch('10s') then -- the payload's type may have a new name
        perform trunkline.raise_in_use(queue, 'ten seconds');
    end if;
    perform pg_notify('trunkline.' || queue, '');
end $$;
