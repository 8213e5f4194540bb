create or replace function trunkline.{do_bury_}(ids bigint[], sizes int[], attempts int[], reasons text[])
    returns table (id bigint, size int, attempt int) language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Makes messages dead letters immediately, each range with its reason.
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with held as (
            delete from trunkline.{queue_} q using unnest(ids, sizes, attempts, reasons) with ordinality d(id, size, attempt, reason, nr)
            where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
              and q.attempt = d.attempt and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            returning d.nr, q.id, q.enqueued_at, q.attempt, q.released, q.size, q.payload, q.metadata,
                      trunkline.{do_kept_}(q.*) as own, d.reason, d.attempt as under
        ), dead as (
            insert into trunkline.{dead_} (id, enqueued_at, attempt, released, error, payload, metadata, own)
            select h.id + m.k, h.enqueued_at, h.attempt - h.released, h.released, coalesce(h.reason, ''), m.payload, m.metadata,
                   trunkline.{do_keptof_}(h.own, m.k)
            from held h, lateral (select generate_series(0, h.size - 1) as k, unnest(h.payload) as payload, unnest(h.metadata) as metadata) m
            where m.k is not null)
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
        reasons := array(select reasons[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline.{do_carve_}(ids, sizes, attempts, true);
    end loop;
end $f$;
