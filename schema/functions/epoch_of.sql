-- The microseconds since 1970 of a time, null for minus infinity; see trunkline.time_of.
create or replace function trunkline.epoch_of(at timestamptz) returns bigint
    language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    return case when isfinite(at) then (extract(epoch from at) * 1000000)::bigint end;
end $$;
