create or replace function trunkline.along_lanes(queue text, holder bigint, n int, lease interval, most int)
    returns table (id bigint, attempt int, key text, enqueued_at timestamptz, due_at timestamptz, payload text, metadata jsonb)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Leases messages from the partitions of a holder, and returns one message per row, for trunkline.lease_partition and
-- trunkline.more. most: the maximum number of partitions that the holder may have.
--
-- A statement that finds nothing may have moved messages of keys that wait to the backlogs of these keys. The next
-- statement then reads the messages behind them. So the function repeats the statement, for up to 100 ms, as long as it
-- moves messages.
declare
    main regclass;
    moved bigint;
    until timestamptz;
begin
    perform trunkline.check_keyed(queue);
    if (select q.key_per_second is not null from trunkline.queue q where q.name = queue) then
        raise exception 'queue % has a rate limit per key, which only workers enforce', quote_literal(queue) using errcode = 'feature_not_supported',
            hint = 'Run a worker; or set the rate of the whole queue instead, with trunkline.limit_queue(..., per_second => 100).';
    end if;
    main := to_regclass(format('trunkline.%I', 'queue_' || queue));
    loop
        moved := pg_stat_get_xact_tuples_updated(main);
        return query execute format($q$
            select b.id + m.k, b.attempt, m.key, b.enqueued_at, b.due_at, m.payload::text, m.metadata
            from trunkline.%I($1, $2, $3, $4, $5) b,
                 lateral (select generate_series(0, b.size - 1) as k, unnest(b.payload) as payload, unnest(b.metadata) as metadata, unnest(b.keys) as key) m $q$,
            'do_lanes_' || queue) using trunkline.check_n(n), lease, holder, trunkline.floor(queue), most;
        exit when found or pg_stat_get_xact_tuples_updated(main) = moved or clock_timestamp() >= until;
        until := coalesce(until, clock_timestamp() + interval '100 ms');
    end loop;
end $$;
