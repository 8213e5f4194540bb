create or replace function trunkline.{do_release_}(ids bigint[], sizes int[], attempts int[])
    returns table (id bigint, size int, attempt int) language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Makes messages due as if they had never been leased. The attempt is not counted, but its number is not used again: a worker that holds the old
-- lease still finds it lost.
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with held as (
            update trunkline.{queue_} q set due_at = trunkline.clock(), released = q.released + 1, error = ''
            from unnest(ids, sizes, attempts) with ordinality d(id, size, attempt, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.size, d.attempt as under)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               coalesce(sum(h.size), 0) as size
        into met from held h;
        return query select * from unnest(met.ids, met.sizes, met.attempts);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline.{do_carve_}(ids, sizes, attempts, true);
    end loop;
end $f$;
