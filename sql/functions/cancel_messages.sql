create or replace function trunkline.cancel_messages(queue text, ids bigint[]) returns table (id bigint, done bool)
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off as $$
-- Deletes messages that wait or are leased, permanently. Deleting the row also ends its lease: the worker finds the
-- lease lost. Busy messages are returned, too, as not done.
declare
    first bigint[];
    sizes int[];
    busy bigint[];
begin
    execute format('select p.first, p.sizes, p.busy from trunkline.%I($1, true) p', 'do_pick_' || queue) into first, sizes, busy using ids;
    return query execute format(
        'with gone as (
             delete from trunkline.%I q using unnest($1, $2) d(id, size)
             where q.id >= d.id and q.id < d.id + d.size
             returning q.id, q.size)
         select g.id + k, true from gone g, generate_series(0, g.size - 1) k', 'queue_' || queue) using first, sizes;
    return query select b, false from unnest(busy) b;
end $$;
