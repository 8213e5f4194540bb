create or replace function trunkline.stats(queue text)
    returns table (due bigint, delayed bigint, leased bigint, to_retry bigint, dead bigint, rows bigint, oldest_due interval)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Returns how many messages are due, delayed, leased, waiting for a retry and dead, in how many rows, and how long the
-- oldest has been due.
--
-- Example:
--     select due, leased, dead, oldest_due from trunkline.stats('emails');
begin
    perform trunkline.check_queue(queue);
    return query execute format($q$
        select coalesce(sum(q.size) filter (where q.due_at <= now.t), 0)::bigint,
               coalesce(sum(q.size) filter (where q.due_at > now.t and q.attempt = 0), 0)::bigint,
               coalesce(sum(q.size) filter (where q.due_at > now.t and q.attempt > 0 and q.error is null), 0)::bigint,
               coalesce(sum(q.size) filter (where q.due_at > now.t and q.error is not null), 0)::bigint,
               (select count(*) from trunkline.%I), count(q.id), max(now.t) - min(q.due_at) filter (where q.due_at <= now.t)
        from (select clock_timestamp() as t) now left join trunkline.%I q on true $q$, 'dead_' || queue, 'queue_' || queue);
end $$;
