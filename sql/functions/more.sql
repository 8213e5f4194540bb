create or replace function trunkline.more(queue text, holder bigint, n int default 100, lease interval default null)
    returns table (id bigint, attempt int, key text, enqueued_at timestamptz, due_at timestamptz, payload text, metadata jsonb)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Leases more messages of the partition that trunkline.lease_partition gave to this holder, and
-- then extends the lease of the partition. Returns no rows, and extends nothing, if nothing is due in the partition, or
-- if the call only moved messages of a key that waits (see trunkline.lease_partition). Fails
-- with TL001 if the holder no longer has a partition: then its leases are over, too. If the result
-- of a call is lost, do not call the function again with this holder. Messages that you do not know
-- of may be leased, and the messages behind them have to wait. Lease another partition instead.
--
-- Example:
--     select * from trunkline.enqueue_many('orders', array['1', '2', '3'], keys => array_fill('customer 2'::text, array[3]));
--     select m.id, m.attempt, m.key, m.payload
--     from trunkline.lease_partition('orders', 1) l, trunkline.more('orders', l.holder, 10) m;
declare
    holds bool;
begin
    perform trunkline.check_keyed(queue);
    execute format('select exists (select from trunkline.%I l where l.holder = $1 and l.held_until > clock_timestamp())', 'lane_' || queue)
        into holds using holder;
    if not holds then
        raise exception 'holder % has no partition of queue %', holder, quote_literal(queue)
            using errcode = 'TL001', hint = 'Its leases ended, or it gave the partition back. Lease another with trunkline.lease_partition.';
    end if;
    return query select m.* from trunkline.along_lanes(queue, holder, n, lease, 0) m;
end $$;
