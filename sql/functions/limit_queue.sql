create or replace function trunkline.limit_queue(
    queue text, max_leased int default null, per_second float8 default null, burst int default null, key_per_second float8 default null,
    key_burst int default null
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '3s' set client_min_messages = warning as $$
-- Sets the limits of a queue, which apply to all processes together; null means no limit. From the commit on, the
-- limits apply to takes and leases, also in programs that are already running. Limits are exact. In return, dequeues of
-- the queue wait for each other's commits: while a transaction that took from the queue is open, other sessions find
-- nothing. With max_leased, transactions that dequeue must be read committed. The first max_leased of a queue builds an
-- index of its messages: writes to the queue wait until the commit.
--
-- max_leased: while this many messages are leased, nothing is dequeued; at least 1. per_second: how
-- many messages are dequeued per second; more than zero, at most a billion (0.1 is one in ten
-- seconds). In any t seconds, at most burst + t * per_second messages are dequeued. burst: how many
-- messages may be dequeued at once after a rest; at least 1, at most a billion, and only together
-- with per_second. The default is as many as in one second, and at least 1; so twice per_second may
-- be dequeued in the first second after a rest. key_per_second, key_burst: the same for each key of
-- a queue with keys, but they limit how often handlers start. Workers enforce this rate without
-- waiting for each other. So partitions of such a queue cannot be leased in SQL. The rate applies
-- to messages that are leased from the commit on.
--
-- Example:
--     select trunkline.limit_queue('emails', max_leased => 100, per_second => 50, burst => 10);
--     select trunkline.limit_queue('emails'); -- no limits
#variable_conflict use_variable
declare
    size float8 := coalesce(burst, greatest(ceil(per_second), 1), 1);
    key_size float8 := coalesce(key_burst, greatest(ceil(key_per_second), 1), 1);
    wrong text;
begin
    perform trunkline.lock_queue(queue);
    perform trunkline.check_queue(queue);
    wrong := (
        select string_agg(format('%s is %s', l.name, l.value), ', ' order by l.nr)
        from (values
            (1, 'max_leased', max_leased::text, max_leased >= 1),
            (2, 'per_second', per_second::text, per_second > 0 and per_second <= 1e9),
            (3, 'burst', burst || case when per_second is null then ' without per_second' else '' end, size between 1 and 1e9 and per_second is not null),
            (4, 'key_per_second', key_per_second::text, key_per_second > 0 and key_per_second <= 1e9),
            (5, 'key_burst', key_burst || case when key_per_second is null then ' without key_per_second' else '' end,
             key_size between 1 and 1e9 and key_per_second is not null)) l(nr, name, value, is_good)
        where l.value is not null and l.is_good is not true);
    if wrong is not null then
        raise exception 'the limits of queue % are out of bounds: %', quote_literal(queue), wrong using errcode = 'invalid_parameter_value',
            hint = 'max_leased is at least 1, per_second more than 0 and at most 1000000000, and burst 1 to 1000000000 and only with per_second; '
                   'so with key_per_second and key_burst. To stop a queue, pause it.';
    elsif key_per_second is not null and (select q.lanes = 0 from trunkline.queue q where q.name = queue) then
        raise exception 'queue % has no keys, so it cannot have a rate limit per key', quote_literal(queue) using errcode = 'invalid_parameter_value',
            hint = 'Pass per_second, for the queue; or create one with trunkline.create_queue(..., partitions => 64).';
    end if;
    update trunkline.queue q
    set max_leased = max_leased, per_second = per_second, burst = case when per_second is not null then size end,
        key_per_second = key_per_second, key_burst = case when key_per_second is not null then key_size end
    where q.name = queue;
    begin
        if to_regclass(format('trunkline.%I', 'limit_' || queue)) is not null then
            execute format('lock table trunkline.%I in exclusive mode', 'limit_' || queue); -- as a dequeue does: see do_bucket_
        end if;
        if max_leased is null and per_second is null then
            execute format('drop table if exists trunkline.%I cascade', 'limit_' || queue);
            delete from trunkline.bucket b where b.queue = queue;
        else
            if to_regclass(format('trunkline.%I', 'limit_' || queue)) is null then
                perform trunkline.check_owner();
                execute format('create table trunkline.%I ()', 'limit_' || queue);
            end if;
            insert into trunkline.bucket as b (queue, tokens, filled_at) values (queue, size, clock_timestamp())
            on conflict on constraint pk_bucket do update
            set tokens = least(greatest(b.tokens, 0), excluded.tokens), filled_at = least(b.filled_at, excluded.filled_at);
        end if;
        if max_leased is null then
            execute format('drop index if exists trunkline.%I', 'leased_' || queue);
        else
            execute format('create index if not exists %I on trunkline.%I (due_at) where attempt > 0 and error is null',
                           'leased_' || queue, 'queue_' || queue);
        end if;
        perform trunkline.install_functions(queue);
    exception when lock_not_available then
        -- While a session waits for this lock, all later sessions wait behind it.
        perform trunkline.raise_in_use(queue, 'three seconds');
    end;
    perform trunkline.describe_functions(queue);
    perform pg_notify('trunkline.' || queue, '');
end $$;
