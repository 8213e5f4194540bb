create or replace function trunkline.gone(queue text, ids bigint[], attempts int[]) returns setof bigint
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off as $$
-- Returns which of these leases no longer exist, because the messages were cancelled, the queue was
-- purged, or another worker has the messages after the lease expired. The function only reads. A
-- lease whose end is not committed still exists. The worker that renews a lease checks against the
-- clock whether it has expired.
begin
    return query execute format(
        'select d.id from unnest($1, $2) d(id, attempt)
         left join lateral (select r.id, r.size, r.attempt, r.error from trunkline.%I r
                            where r.id <= d.id and r.id >= d.id / 1024 * 1024 order by r.id desc limit 1) q on true
         where (d.id - q.id < q.size and q.attempt = d.attempt and q.error is null) is not true', 'queue_' || queue) using ids, attempts;
end $$;
