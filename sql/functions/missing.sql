create or replace function trunkline.missing(
    ids bigint[], sizes int[], found_nrs bigint[], found_ids bigint[], found_sizes int[],
    out nrs bigint[], out missing_ids bigint[], out missing_sizes int[])
    language plpgsql immutable set search_path = pg_catalog, pg_temp set jit = off as $$
-- Returns the parts of ranges of messages that were not found, each with the number of its range.
-- The cost is linear, except for the sort, because there may be tens of thousands of ranges and of
-- found parts.
begin
    with part as (
        select f.nr, f.id as low, f.id + f.size as high from unnest(found_nrs, found_ids, found_sizes) f(nr, id, size)
        union all
        select d.nr, e.at, e.at from unnest(ids, sizes) with ordinality d(id, size, nr), lateral (values (d.id), (d.id + d.size)) e(at)
    ), gap as (
        select p.nr, lag(p.high) over (partition by p.nr order by p.low, p.high) as low, p.low as high from part p
    )
    select array_agg(g.nr order by g.low, g.nr), array_agg(g.low order by g.low, g.nr), array_agg((g.high - g.low)::int order by g.low, g.nr)
    into nrs, missing_ids, missing_sizes from gap g where g.high > g.low;
end $$;
