create or replace function trunkline.{do_expire_}(tids tid[], inout to_bury int)
    returns int language plpgsql set search_path = pg_catalog, pg_temp as $f$
-- Buries messages that have used all attempts, in the order of their ctids in the list, as far as
-- to_bury allows: see do_gather_, which has locked them. Returns what is left of to_bury.
#variable_conflict use_variable
begin
    with weighed as (
        select d.tid, q.size + pg_column_size(q.payload) / 8192 as weight, d.nr
        from unnest(tids) with ordinality d(tid, nr) join trunkline.{queue_} q on q.ctid = d.tid
    ), chosen as materialized (
        select w.tid, w.weight, sum(w.weight) over (order by w.nr) - w.weight as before from weighed w
    ), gone as (
        delete from trunkline.{queue_} q using chosen c where q.ctid = c.tid and c.before < coalesce(to_bury, 4096)
        returning q.id, q.enqueued_at, q.attempt, q.released, q.error, q.size, q.payload, q.metadata, trunkline.{do_kept_}(q.*) as own, c.weight
    ), buried as (
        insert into trunkline.{dead_} (id, enqueued_at, attempt, released, error, payload, metadata, own)
        select g.id + m.k, g.enqueued_at, g.attempt - g.released, g.released, coalesce(g.error, 'the lease of the last attempt expired'),
               m.payload, m.metadata, trunkline.{do_keptof_}(g.own, m.k)
        from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m
        where m.k is not null
    )
    select coalesce(to_bury, 4096) - coalesce(8 + sum(g.weight), 0) into to_bury from gone g;
end $f$;
