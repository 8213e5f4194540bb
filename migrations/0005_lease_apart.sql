-- A lease for workers that run many messages at a time. A message whose lease ran out may have killed its worker: leased among others
-- it would do so again, and each of them would be charged for it. So it comes alone.

do $$ begin
    execute replace(pg_get_functiondef('trunkline.drop_queue(text)'::regprocedure), '''lease'',', '''lease'', ''lease_apart'',');
end $$;

create function trunkline.install_lease_apart(queue text) returns void
    language plpgsql set search_path = pg_catalog as $install$
declare
    text_of text := $t$
        create or replace function trunkline.{lease_apart}(n int, lease interval, floor timestamptz, rows int)
        returns table (id bigint, attempt int, size int, enqueued_at timestamptz, payload {type}[], ran_out bool) language plpgsql
        set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
        set jit = off set plan_cache_mode = force_generic_plan as $f$
        #variable_conflict use_variable
        declare
            until timestamptz := clock_timestamp();
            line record;
            got int := 0;
        begin
            while n > 0 loop
                -- Locked, so that the lease below finds the same rows. What comes after one that ran out is left to the next call.
                with due as materialized (
                    select q.id, q.due_at, q.size, q.attempt > 0 and q.error is null as ran_out
                    from trunkline.{table} q
                    where q.due_at >= floor and q.due_at <= until
                    order by q.due_at, q.id + 0 limit rows for update skip locked
                ), line as (
                    select d.size, bool_or(d.ran_out) over (order by d.due_at, d.id) as apart from due d
                )
                select count(*)::int as seen, (count(*) filter (where not l.apart))::int as fresh,
                       (coalesce(sum(l.size) filter (where not l.apart), 0))::int as size
                into line from line l;
                exit when line.seen = 0 or line.fresh = 0 and got > 0;
                if line.fresh = 0 then
                    return query select l.id, l.attempt, l.size, l.enqueued_at, l.payload, true
                                 from trunkline.{lease}(1, lease, floor, 1) l;
                    return;
                end if;
                line.size := least(n, line.size);
                return query select l.id, l.attempt, l.size, l.enqueued_at, l.payload, false
                             from trunkline.{lease}(line.size, lease, floor, line.fresh) l;
                exit when line.fresh < line.seen;
                n := n - line.size;
                got := got + line.size;
                rows := least(n, 1 + n::bigint * line.seen / line.size);
            end loop;
        end $f$ $t$;
begin
    text_of := replace(text_of, '{table}', quote_ident('queue_' || queue));
    text_of := replace(text_of, '{type}', trunkline.payload_type(queue)::text);
    execute regexp_replace(text_of, '\{(lease|lease_apart)\}', '"do_\1_' || queue || '"', 'g');
end $install$;

create or replace function trunkline.install_queue(queue text) returns void
    language plpgsql as $$
begin
    perform trunkline.install_verbs(queue);
    perform trunkline.install_bury(queue);
    perform trunkline.install_lease_apart(queue);
end $$;

select trunkline.install_lease_apart(q.name) from trunkline.queue q;
