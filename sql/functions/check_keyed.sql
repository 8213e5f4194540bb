create or replace function trunkline.check_keyed(queue text) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Fails, with a hint, if the queue does not exist or its messages have no keys.
begin
    perform trunkline.check_queue(queue);
    if (select q.lanes = 0 from trunkline.queue q where q.name = queue) then
        raise exception 'queue % has no partitions: its messages have no keys', quote_literal(queue)
            using errcode = 'feature_not_supported', hint = 'Lease with trunkline.lease; or create one with trunkline.create_queue(..., partitions => 64).';
    end if;
end $$;
