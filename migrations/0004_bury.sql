-- A lease's end of its own: dead at once, for messages that no further attempt would help.

-- What install_queue has written until now keeps its text, which names its own parameter, under a name of its own.
do $$ begin
    execute replace(pg_get_functiondef('trunkline.install_queue(text)'::regprocedure), 'install_queue', 'install_verbs');
end $$;

-- As the other ends: first the rows that lie wholly inside the ranges; if messages are missing, the rows that straddle an edge are carved
-- there, and once more. Returns what was settled.
create function trunkline.install_bury(queue text) returns void
    language plpgsql set search_path = pg_catalog as $install$
declare
    text_of text := $t$
        create or replace function trunkline.{bury}(ids bigint[], sizes int[], attempts int[], reasons text[])
        returns table (id bigint, size int, attempt int) language plpgsql
        set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
        set jit = off set plan_cache_mode = force_generic_plan as $f$
        #variable_conflict use_variable
        declare
            asked bigint := (select sum(s) from unnest(sizes) s);
            settled_ids bigint[] := '{}';
            settled_sizes int[] := '{}';
            settled_attempts int[] := '{}';
            more record;
        begin
            for pass in 1..2 loop
                with gone as (
                    delete from trunkline.{table} q using unnest(ids, sizes, attempts, reasons) d(id, size, attempt, reason)
                    where q.id >= d.id and q.id < d.id + d.size and q.id + q.size <= d.id + d.size
                      and q.attempt = d.attempt and q.error is null and q.due_at > clock_timestamp()
                    returning q.id, q.enqueued_at, q.attempt, q.released, q.size, q.payload, d.reason
                ), dead as (
                    insert into trunkline.{dead} (id, enqueued_at, attempt, error, payload)
                    select g.id + m.k, g.enqueued_at, g.attempt - g.released, coalesce(g.reason, ''), m.payload
                    from gone g, lateral (select generate_series(0, g.size - 1) as k, unnest(g.payload) as payload) m
                )
                select array_agg(g.id) as ids, array_agg(g.size) as sizes, array_agg(g.attempt) as attempts into more from gone g;
                settled_ids := settled_ids || more.ids;
                settled_sizes := settled_sizes || more.sizes;
                settled_attempts := settled_attempts || more.attempts;
                exit when pass = 2 or (select coalesce(sum(s), 0) from unnest(settled_sizes) s) >= asked;
                perform trunkline.{carve}(d.id, d.id + d.size, d.attempt, true) from unnest(ids, sizes, attempts) d(id, size, attempt);
            end loop;
            return query select * from unnest(settled_ids, settled_sizes, settled_attempts);
        end $f$ $t$;
begin
    text_of := replace(text_of, '{table}', quote_ident('queue_' || queue));
    text_of := replace(text_of, '{dead}', quote_ident('dead_' || queue));
    execute regexp_replace(text_of, '\{(bury|carve)\}', '"do_\1_' || queue || '"', 'g');
end $install$;

create or replace function trunkline.install_queue(queue text) returns void
    language plpgsql as $$
begin
    perform trunkline.install_verbs(queue);
    perform trunkline.install_bury(queue);
end $$;

select trunkline.install_bury(q.name) from trunkline.queue q;

-- A dead letter at once, whatever attempts are left.
create function trunkline.bury(queue text, id bigint, attempt int, reason text default '') returns void
    language sql as $$ select trunkline.settle('bury', queue, array[id], array[attempt], ', array[$4]', null, reason) $$;
