create or replace function trunkline.refuse_keys(queue text) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Errs: from a queue with keys, messages come along lanes.
begin
    raise exception 'queue % has keys: its messages are leased along lanes', quote_literal(queue)
        using errcode = 'feature_not_supported', hint = 'Run a worker; or lease a lane with trunkline.lease_lane.';
end $$;
