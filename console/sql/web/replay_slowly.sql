-- Nobody sees a letter between its replay and its new due time: both commit at once.
, back as materialized (select trunkline.replay($3, ids) as n from ids),
spread as materialized (
    select count(*) as n
    from back, ids, unnest(ids.ids) with ordinality u(id, place),
         lateral trunkline.reschedule($3, array[u.id], clock_timestamp() + make_interval(secs => u.place / $7::float8))
    where back.n > 0)
select greatest(back.n, 0 * spread.n) as n from back, spread
