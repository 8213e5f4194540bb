create or replace function trunkline.sort_lanes(queue text, lanes int, first int) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Moves the rows of a queue with keys to the partitions of their keys. There are `lanes` partitions, numbered from
-- `first`. Splits rows that have keys of several partitions. The caller must have locked the table. Returns how many
-- rows changed.
#variable_conflict use_variable
declare
    rows text := 'queue_' || queue;
    columns text;
    parts text;
    count bigint;
begin
    -- A generated column accepts no value, not even the one that it has.
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
            where q.lane <> $2 + r.lane or r.size < q.size
        ), more as (
            insert into trunkline.%1$I (%2$s) select %3$s from run r join trunkline.%1$I q on q.id = r.id where r.place > 1)
        update trunkline.%1$I q
        set lane = $2 + r.lane, size = r.size, payload = q.payload[:r.size], keys = q.keys[:r.size],
            metadata = case when num_nonnulls(variadic q.metadata[:r.size]) > 0 then q.metadata[:r.size] end
        from run r where q.id = r.id and r.place = 1 $q$, rows, columns, parts) using lanes, first;
    get diagnostics count = row_count;
    return count;
end $$;
