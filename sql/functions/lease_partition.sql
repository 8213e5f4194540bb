create or replace function trunkline.lease_partition(queue text, n int default 100, lease interval default null)
    returns table (holder bigint, id bigint, attempt int, key text, enqueued_at timestamptz, due_at timestamptz, payload text, metadata jsonb)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Leases a partition of a queue with keys, and up to n due messages of it, in order. No other consumer gets messages of
-- the partition until it is released (see trunkline.release_partition) or one and a half lease times have passed.
-- Handle messages of the same key one after another. End each lease with ack, archive, retry, bury or release, and
-- release the partition after the last one.
--
-- After retry or release, also release the messages behind it with the same key: they come again, in order. If a
-- message of the key is waiting for its retry, ack and archive of the messages behind it fail with TL001. Commit
-- immediately.
--
-- An empty result does not mean that nothing is due. If thousands of messages of a key that waits come first, each call
-- moves some of them to a backlog of the key, and may return nothing. Commit, and call the function again.
--
-- holder: the number to pass to trunkline.more and trunkline.release_partition. lease: as in trunkline.lease.
--
-- Example:
--     select trunkline.create_queue('orders', 'jsonb', partitions => 64);
--     select trunkline.enqueue('orders', '{"total": 17}', key => 'customer 1');
--     select holder, id, attempt, key, payload from trunkline.lease_partition('orders', 10);
begin
    holder := (random() * 9007199254740992)::bigint;
    return query select holder, m.* from trunkline.along_lanes(queue, holder, n, lease, 1) m;
end $$;
