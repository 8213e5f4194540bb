-- Takes up to n messages that are due, oldest first, in the caller's transaction: at most once where it commits at once,
-- exactly once for effects in the same transaction. The rest of a row that is cut is hidden until the commit.
create or replace function trunkline.take(queue text, n int default 1)
    returns table (id bigint, attempt int, enqueued_at timestamptz, payload text, metadata jsonb)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform trunkline.check_queue(queue);
    return query execute format($q$
        select b.id + m.k, b.attempt, b.enqueued_at, m.payload::text, m.metadata
        from trunkline.%I($1, $2) b,
             lateral (select generate_series(0, b.size - 1) as k, unnest(b.payload) as payload, unnest(b.metadata) as metadata) m $q$,
        'do_take_' || queue)
        using trunkline.check_n(n), trunkline.floor(queue);
end $$;
