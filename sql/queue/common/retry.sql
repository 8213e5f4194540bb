create or replace function trunkline.{do_retry_}(ids bigint[], sizes int[], attempts int[], delays interval[], errors text[])
    returns table (id bigint, size int, attempt int, dead boolean) language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Gives messages back after a failure under a lease. They are due again after the delay of their
-- range, or become dead letters if their attempts are used up.
#variable_conflict use_variable
declare
    met record;
    rest record;
begin
    for pass in 1..3 loop -- another session may split a row of more than 32 messages twice
        with failed as materialized (
            select d.nr, q.ctid as tid, q.attempt as under, q.attempt as attempt,
                   q.attempt - q.released >= {max_attempts} as spent, d.delay, d.error
            from unnest(ids, sizes, attempts, delays, errors) with ordinality d(id, size, attempt, delay, error, nr)
            join trunkline.{queue_} q
              on q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size and q.attempt = d.attempt
             and q.attempt > 0 and q.error is null and q.due_at > clock_timestamp()
            for update of q
        ), again as (
            update trunkline.{queue_} q
            set due_at = greatest(trunkline.clock() + f.delay, trunkline.clock()), attempt = f.attempt, error = coalesce(f.error, '')
            from failed f where q.ctid = f.tid and not f.spent
            returning f.nr, q.id, q.size, f.under
        ), gone as (
            delete from trunkline.{queue_} q using failed f where q.ctid = f.tid and f.spent
            returning f.nr, q.id, q.enqueued_at, q.size, q.payload, q.metadata, trunkline.{do_kept_}(q.*) as own,
                      f.under, f.attempt - q.released as charged, q.released, f.error as reason
        ), dead as (
            insert into trunkline.{dead_} (id, enqueued_at, attempt, released, error, payload, metadata, own)
            select g.id + m.k, g.enqueued_at, g.charged, g.released, coalesce(g.reason, ''), m.payload, m.metadata, trunkline.{do_keptof_}(g.own, m.k)
            from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload, unnest(g.metadata) as metadata) m
            where m.k is not null
        ), held as (
            select a.nr, a.id, a.size, a.under, false as dead from again a union all select g.nr, g.id, g.size, g.under, true from gone g)
        select array_agg(h.nr) as nrs, array_agg(h.id) as ids, array_agg(h.size) as sizes, array_agg(h.under) as attempts,
               array_agg(h.dead) as died, coalesce(sum(h.size), 0) as size
        into met from held h;
        -- Reads the setting from the table, because it may have changed while the call waited for a
        -- lock.
        if {keyed} and (select q.per_key = 1 from trunkline.queue q where q.name = {literal}) then
            perform trunkline.{do_hold_}(met.ids, met.sizes);
        end if;
        return query select * from unnest(met.ids, met.sizes, met.attempts, met.died);
        exit when pass = 3 or met.size >= (select sum(s) from unnest(sizes) s);
        rest := trunkline.missing(ids, sizes, met.nrs, met.ids, met.sizes);
        -- A message that was not found has lost its lease, or shares its row with messages that the
        -- call does not name. In the second case the row is split, and the next pass finds the
        -- message.
        attempts := array(select attempts[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        delays := array(select delays[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        errors := array(select errors[nr] from unnest(rest.nrs) with ordinality r(nr, at) order by at);
        ids := rest.missing_ids;
        sizes := rest.missing_sizes;
        perform trunkline.{do_carve_}(ids, sizes, attempts, true);
    end loop;
end $f$;
