-- Leases up to n messages that are due, oldest first: nobody else gets them until the lease ends. End it with ack,
-- archive, retry, bury or release, naming id and attempt; after its time it ends by itself. Commit at once: the rest of a
-- row that is cut is hidden until the commit.
--
-- lease: more than zero and at most 365 days; null is the queue's.
create or replace function trunkline.lease(queue text, n int default 1, lease interval default null)
    returns table (id bigint, attempt int, enqueued_at timestamptz, due_at timestamptz, payload text, metadata jsonb)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform trunkline.check_queue(queue);
    return query execute format($q$
        select b.id + m.k, b.attempt, b.enqueued_at, b.due_at, m.payload::text, m.metadata
        from trunkline.%I($1, $2, $3) b,
             lateral (select generate_series(0, b.size - 1) as k, unnest(b.payload) as payload, unnest(b.metadata) as metadata) m $q$,
        'do_lease_' || queue)
        using trunkline.check_n(n), lease, trunkline.floor(queue);
end $$;
