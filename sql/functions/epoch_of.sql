create or replace function trunkline.epoch_of(at timestamptz) returns bigint
    language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
-- Converts a time to microseconds since 1970; minus infinity becomes the smallest bigint (see trunkline.time_of). It
-- does not become null, because a session may have a setting that forbids null in the text of an array.
begin
    return case when isfinite(at) then (extract(epoch from at) * 1000000)::bigint else '-9223372036854775808' end;
end $$;
