-- Gives a queue with keys more lanes, for trunkline.alter_queue. Each of the lanes that there are falls into several, and they have its holder, its floor and
-- whatever else holds for it: so whoever works on, with messages in hand, has the keys that were its own. Rows with keys of several lanes are cut. The lanes
-- get new numbers: by these a row is known that somebody brings who knows the former ones (trunkline.keep_place).
create or replace function trunkline.more_lanes(queue text, lanes int) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
    now_is trunkline.queue;
    first int;
    rows text := 'queue_' || queue;
    held text := 'lane_' || queue;
    lines text := 'line_' || queue;
    columns text;
    parts text;
begin
    select * into strict now_is from trunkline.queue q where q.name = queue;
    if now_is.lanes = 0 then
        raise exception 'queue % has no lanes: its messages have no keys', quote_literal(queue)
            using errcode = 'feature_not_supported', hint = 'Create a queue with trunkline.create_queue(..., lanes => 64).';
    elsif lanes < now_is.lanes or lanes % now_is.lanes > 0 then
        raise exception 'queue % has % lanes, and cannot have %', quote_literal(queue), now_is.lanes, lanes
            using errcode = 'invalid_parameter_value', hint = format('Pass a multiple of %s, up to 256: each lane falls into several.', now_is.lanes);
    end if;
    first := now_is.first_lane + now_is.lanes;
    -- In the order in which whoever leases meets them. Whoever has begun is done by then.
    execute format('lock table trunkline.%I, trunkline.%I, trunkline.%I in access exclusive mode', held, rows, lines);
    execute format('drop trigger keep_place on trunkline.%I', rows);
    execute format('alter table trunkline.%I drop constraint lane', rows);
    -- What Postgres fills takes no value, not even its own.
    select string_agg(quote_ident(a.attname), ', ' order by a.attnum), string_agg(case a.attname
               when 'id' then 'q.id + r.place - 1' when 'size' then 'r.size' when 'lane' then '$2 + r.lane'
               when 'metadata' then 'case when num_nonnulls(variadic q.metadata[r.place : r.place + r.size - 1]) > 0 '
                                    'then q.metadata[r.place : r.place + r.size - 1] end'
               when 'payload' then 'q.payload[r.place : r.place + r.size - 1]' when 'keys' then 'q.keys[r.place : r.place + r.size - 1]'
               else format('q.%I', a.attname) end, ', ' order by a.attnum)
    into columns, parts from pg_attribute a
    where a.attrelid = to_regclass(format('trunkline.%I', rows)) and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' and a.attidentity = '';
    execute format($q$
        with run as materialized (
            select q.id, r.place, r.size, r.lane from trunkline.%1$I q, lateral (
                select min(k.nr)::int as place, count(*)::int as size, k.lane from (
                    select u.nr, l.lane, u.nr - row_number() over (partition by l.lane order by u.nr) as island
                    from unnest(q.keys) with ordinality u(key, nr), lateral (select trunkline.lane_of(u.key, $1) as lane) l) k
                group by k.lane, k.island) r
        ), more as (
            insert into trunkline.%1$I (%2$s) select %3$s from run r join trunkline.%1$I q on q.id = r.id where r.place > 1)
        update trunkline.%1$I q
        set lane = $2 + r.lane, size = r.size, payload = q.payload[:r.size], keys = q.keys[:r.size],
            metadata = case when num_nonnulls(variadic q.metadata[:r.size]) > 0 then q.metadata[:r.size] end
        from run r where q.id = r.id and r.place = 1 $q$, rows, columns, parts) using lanes, first;
    execute format('alter table trunkline.%I add constraint lane check (lane between %s and %s)', rows, first, first + lanes - 1);
    execute format('insert into trunkline.%1$I (lane, holder, held_until, wanted_until, served_at, floor, starts_until, empty_at)
                    select $1 + n, h.holder, h.held_until, h.wanted_until, h.served_at, h.floor, h.starts_until, h.empty_at
                    from generate_series(0, $2 - 1) n join trunkline.%1$I h on h.lane = $3 + n %% $4', held)
        using first, lanes, now_is.first_lane::int, now_is.lanes;
    execute format('delete from trunkline.%I h where h.lane >= 0 and h.lane < $1', held) using first;
    execute format('update trunkline.%I l set lane = $1 + trunkline.lane_of(l.key, $2)', lines) using first, lanes;
    execute format('create trigger keep_place before insert on trunkline.%I for each row execute function trunkline.keep_place(%s, %s)',
                   rows, first, lanes);
    update trunkline.queue q set lanes = lanes, first_lane = first where q.name = queue;
end $$;
