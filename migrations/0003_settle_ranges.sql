-- An acknowledgement of many messages names neighbours as one range: each message named alone would cut its row once more. And nothing of
-- it is worth compiling: Postgres takes the unnested arrays for a million rows, and compiled for 180 ms to settle a hundred.

create or replace function trunkline.settle(verb text, queue text, ids bigint[], attempts int[], more text default '',
                                            span interval default null, reason text default null) returns void
    language plpgsql set jit = off as $$
declare
    lost bigint[];
begin
    perform trunkline.check_queue(queue);
    if cardinality(ids) is distinct from cardinality(attempts) or array_position(ids, null) is not null
       or array_position(attempts, null) is not null then
        raise exception 'every message needs its attempt: % ids, % attempts', coalesce(cardinality(ids), 0), coalesce(cardinality(attempts), 0)
            using errcode = 'invalid_parameter_value', hint = 'Pass id and attempt as trunkline.lease returned them.';
    end if;
    execute format($q$
        with asked as materialized (
            select distinct id, attempt from unnest($1::bigint[], $2::int[]) i(id, attempt)
        ), range as (
            select min(id) as id, count(*)::int as size, attempt
            from (select id, attempt, id - row_number() over (partition by attempt order by id) as island from asked) i
            group by attempt, island
        ), settled as materialized (
            select d.id + k as id, d.attempt
            from (select array_agg(id order by id, attempt) as ids, array_agg(size order by id, attempt) as sizes,
                         array_agg(attempt order by id, attempt) as attempts from range) r,
                 trunkline.%I(r.ids, r.sizes, r.attempts %s) d, generate_series(0, d.size - 1) k
            where r.ids is not null
        )
        select array_agg(id order by id) from asked where (id, attempt) not in (select id, attempt from settled) $q$,
        'do_' || verb || '_' || queue, more)
        into lost using ids, attempts, span, reason;
    if lost is not null then
        raise exception 'the lease of message % of queue % is lost', array_to_string(lost[1:3], ', '), quote_literal(queue)
            using errcode = 'TL001', detail = 'It ended, and the message may be someone else''s now.',
                  hint = 'Roll back what was done for it. Work that takes longer needs a longer lease, or trunkline.extend.';
    end if;
end $$;
