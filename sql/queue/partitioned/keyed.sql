create or replace function trunkline.{do_keyed_}(payloads {type}[], keys text[], delay interval default '0', metadata jsonb[] default null,
        due timestamptz default null)
    returns setof bigint language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Enqueues like do_batch_, for a queue with keys: messages of the same partition share rows. The ids are returned in
-- the order of the payloads.
#variable_conflict use_variable
declare
    count bigint;
begin
    if delay is null or delay < '0' or delay > '36500 days' then
        raise exception 'a delay of % is out of bounds', coalesce(delay::text, 'null') using errcode = 'invalid_parameter_value',
            hint = 'A delay is at least zero and at most 36500 days.';
    elsif payloads is null then
        raise exception 'the payloads of queue % are null', quote_literal({literal}) using errcode = 'null_value_not_allowed',
            hint = 'Pass an array; an empty one enqueues nothing.';
    elsif array_ndims(payloads) > 1 then
        raise exception 'the payloads must be an array of one dimension, not of %', array_ndims(payloads)
            using errcode = 'array_subscript_error', hint = 'Pass an array of one dimension.';
    end if;
    perform trunkline.check_keys({literal}, keys, cardinality(payloads));
    payloads := payloads[:];
    if metadata is not null then
        if cardinality(metadata) <> cardinality(payloads) then
            raise exception 'the call has % payloads, but metadata for %', cardinality(payloads), cardinality(metadata)
                using errcode = 'invalid_parameter_value', hint = 'Pass one for each payload, or null for a payload without one.';
        end if;
        perform trunkline.check_metadata(m) from unnest(metadata) m;
    end if;
    return query
        with message as (
            select m.nr, m.metadata, m.key, {first_lane} + trunkline.lane_of(m.key, {key_lanes}) as lane,
                   trunkline.payload_bytes({literal}, pg_column_size(m.payload)) + coalesce(pg_column_size(m.metadata), 0) as bytes
            from (select generate_series(1, cardinality(payloads)) as nr, unnest(payloads) as payload, unnest(metadata) as metadata,
                         unnest(keys) as key) m
        ), placed as (
            select m.*, row_number() over w as at, (sum(m.bytes) over w - m.bytes)::bigint / 65536 as page
            from message m window w as (partition by m.lane order by m.nr)
        ), batch as (
            select array_agg(p.nr order by p.nr) as nrs, count(*)::int as size, p.lane,
                   array(select payloads[u.nr] from unnest(array_agg(p.nr order by p.nr)) u(nr)) as payload,
                   case when count(p.metadata) > 0 then array_agg(p.metadata order by p.nr) end as metadata, array_agg(p.key order by p.nr) as keys,
                   row_number() over (order by min(p.nr)) as batch
            from placed p group by p.lane, p.page, p.bytes > 65536, (p.at - 1) / {max_batch}
        ), stored as (
            insert into trunkline.{queue_} (due_at, size, payload, metadata, lane, keys)
            select greatest(greatest(trunkline.clock(), due) + delay, trunkline.clock()), b.size, b.payload, b.metadata, b.lane, b.keys
            from batch b order by b.batch
            returning id
        )
        select n.ids[b.batch] + m.at - 1
        from (select array_agg(s.id order by s.id) as ids from stored s) n, batch b, unnest(b.nrs) with ordinality m(nr, at)
        where cardinality(n.ids) = (select count(*) from batch) -- otherwise the ids would belong to other messages
        order by m.nr;
    get diagnostics count = row_count;
    if count <> cardinality(payloads) then
        perform trunkline.not_stored({literal}, cardinality(payloads), count);
    end if;
    if cardinality(payloads) > 0 and trunkline.announced({channel}) then
        perform pg_notify({channel}, '');
    end if;
end $f$;
