create or replace function trunkline.refuse_keys(queue text) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Raises 0A000, because messages of a queue with keys are leased by partition.
begin
    raise exception 'queue % has keys: its messages are leased by partition', quote_literal(queue)
        using errcode = 'feature_not_supported', hint = 'Run a worker; or lease a partition with trunkline.lease_partition.';
end $$;
