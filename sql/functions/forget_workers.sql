create or replace function trunkline.forget_workers() returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
-- Deletes reports of workers that are more than an hour old, from all queues, at most 1,000 per call; returns how many.
-- Workers call this function when they report. The function runs with the owner's right to delete.
declare
    count bigint;
begin
    delete from trunkline.worker w
    where w.ctid = any (array(
        select o.ctid from trunkline.worker o where o.at < now() - interval '1 hour' order by o.at limit 1000 for update skip locked));
    get diagnostics count = row_count;
    return count;
end $$;
