create or replace function trunkline.lane_of(key text, lanes int) returns smallint
    language plpgsql immutable strict set search_path = pg_catalog, pg_temp as $$
-- Returns the partition of a key: the first four bytes of its SHA-256, as an integer, modulo the number of partitions.
-- Clients compute the partition the same way.
declare
    hash bytea := sha256(convert_to(key, 'UTF8'));
begin
    return ((get_byte(hash, 0)::bigint << 24) + (get_byte(hash, 1) << 16) + (get_byte(hash, 2) << 8) + get_byte(hash, 3)) % lanes;
end $$;
