create or replace function trunkline.alter_queue(
    queue text, max_attempts int default null, lease interval default null, max_batch int default null,
    aging interval default null, per_key int default null, partitions int default null
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Changes the settings of a queue; null leaves a setting as it is. Messages that are leased keep their leases. The type
-- of the payloads, the number of priorities and uniqueness cannot be changed, and a queue without keys cannot get them.
-- aging is for queues with priorities, per_key for queues with keys. Running workers keep the lease and the per_key with
-- which they started, and open queues their max_batch: restart the programs.
--
-- partitions: the new number of partitions of a queue with keys, a multiple of the present number and at most 256.
-- Workers and producers may keep running, and each key keeps its order and its limits. The queue is blocked while its
-- waiting messages are sorted into the new partitions, about 20 seconds per million messages.
--
-- Example:
--     select trunkline.alter_queue('emails', max_batch => 100);
#variable_conflict use_variable
declare
    now_is trunkline.queue;
begin
    perform trunkline.lock_queue(queue);
    perform trunkline.check_queue(queue);
    select * into now_is from trunkline.queue q where q.name = queue;
    if per_key is not null and now_is.lanes = 0 or aging is not null and now_is.priorities = 1 then
        raise exception 'queue % has no %', quote_literal(queue), case when per_key is not null and now_is.lanes = 0 then 'keys' else 'priorities' end
            using errcode = 'invalid_parameter_value', hint = 'per_key is for queues with keys, aging for queues with priorities.';
    end if;
    max_attempts := coalesce(max_attempts, now_is.max_attempts);
    lease := coalesce(lease, now_is.lease);
    max_batch := coalesce(max_batch, now_is.max_batch);
    aging := coalesce(aging, now_is.head_start);
    per_key := coalesce(per_key, now_is.per_key);
    partitions := coalesce(partitions, now_is.lanes);
    perform trunkline.check_settings(queue, max_attempts, lease, max_batch, now_is.priorities, aging, partitions, per_key);
    update trunkline.queue q set max_attempts = max_attempts, lease = lease, max_batch = max_batch, head_start = aging, per_key = per_key
    where q.name = queue;
    if partitions <> now_is.lanes then
        perform trunkline.more_lanes(queue, partitions);
    end if;
    perform trunkline.install_functions(queue);
    if per_key = 1 and now_is.per_key <> 1 then
        -- From now on the messages of each key keep their order: while one waits for its retry, the later ones wait
        -- behind it.
        perform trunkline.lock_partitions(queue), trunkline.hold_retries(queue);
    end if;
end $$;
