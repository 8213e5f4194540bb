create or replace function trunkline.epoch_of(at timestamptz) returns bigint
    language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
-- The microseconds since 1970 of a time, the least number for minus infinity; see trunkline.time_of. Not null, which a
-- session may have forbidden in the text of an array.
begin
    return case when isfinite(at) then (extract(epoch from at) * 1000000)::bigint else '-9223372036854775808' end;
end $$;
