-- Replays letters, and spreads their due times. Both commit together, so no session sees a replayed letter with its old due time.
, back as materialized (select trunkline.replay($3, ids) as n from ids),
spread as materialized (
    select pg_catalog.count(*) as n
    from back, ids, pg_catalog.unnest(ids.ids) with ordinality u(id, place),
         lateral trunkline.reschedule($3, array[u.id], pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => u.place / $8::float8))
    where back.n > 0)
select greatest(back.n, 0 * spread.n) as n from back, spread
