create or replace function trunkline.forget_relays() returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
-- Deletes the rows of outward relays (from a queue to a broker) that ended or have not reported for a day; returns how
-- many. Relays call this function when they end. The function runs with the owner's right to delete.
declare
    count bigint;
begin
    delete from trunkline.relay r
    where (r.queue, r.name) in (
        select o.queue, o.name from trunkline.relay o
        where not o.inward and o.seen_at < clock_timestamp() - interval '1 day' limit 1000 for update skip locked);
    get diagnostics count = row_count;
    return count;
end $$;
